//! The view at many sizes, its rates, and the keys that stop a load.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::Terminal;
use ratatui::backend::TestBackend;

use super::terminal::is_stop;
use super::*;
use crate::terminal::Style;

const ASCII: Style = Style { width: 80, colour: false, unicode: false, ..Style::PLAIN };

/// Returns two disks side by side, as a virtual machine saw them: one behind a write-back cache, one plain.
fn sample(tenths: u64) -> LiveSample {
    let target = |name: &str, per_second: u64, storage: bool| {
        let operations = per_second * tenths / 10;
        LiveTarget {
            name: name.to_owned(),
            application: LiveApplication {
                operations,
                bytes: operations * 65_536,
                flushes: operations / 10,
                latency: LivePercentiles {
                    p50: Some(52.4e-6),
                    p99: Some(1.9e-3),
                    p999: Some(21e-3),
                    max: Some(0.126),
                },
                sync: LivePercentiles { p50: Some(8e-3), p99: Some(31e-3), ..LivePercentiles::default() },
            },
            storage: storage.then_some(LiveStorage {
                reads: 0,
                writes: operations / 2,
                bytes: operations * 65_536,
                flushes: Some(operations / 10),
            }),
            taken_at: None,
            shares_devices: false,
        }
    };
    LiveSample {
        elapsed: tenths as f64 / 10.0,
        expected: Some(60.0),
        phase: LivePhase::Measuring,
        targets: vec![target("tiered+cache", 1254, true), target("plain HDD", 200, false)],
        remarks: Vec::new(),
    }
}

fn view(style: Style, looks: u64) -> LiveView {
    let mut view = LiveView::new("plumb load", style);
    (1..=looks).for_each(|tenths| view.feed(sample(tenths)));
    view
}

/// Returns the view as text, and whether anything in it is coloured.
fn drawn(view: &LiveView, width: u16, height: u16) -> (String, bool) {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| view.draw(frame)).unwrap();
    let buffer = terminal.backend().buffer();
    let mut text = String::new();
    for y in 0..height {
        let line: String = (0..width).map(|x| buffer[(x, y)].symbol()).collect();
        text.push_str(line.trim_end());
        text.push('\n');
    }
    let coloured = buffer.content().iter().any(|cell| cell.fg != ratatui::style::Color::Reset);
    (text, coloured)
}

#[test]
fn two_targets_side_by_side_at_three_sizes() {
    for (width, height) in [(100, 30), (60, 20), (40, 10)] {
        insta::assert_snapshot!(
            format!("live-{width}x{height}"),
            drawn(&view(Style::PLAIN, 100), width, height).0
        );
    }
    insta::assert_snapshot!("live-ascii", drawn(&view(ASCII, 100), 80, 24).0);
}

#[test]
fn no_size_panics_and_nothing_fed_does() {
    let mut odd = LiveView::new("\u{1b}[31m\u{202e}", Style::PLAIN);
    odd.feed(LiveSample { elapsed: f64::NAN, expected: Some(f64::INFINITY), ..sample(3) });
    odd.feed(LiveSample { elapsed: -1.0, expected: Some(0.0), ..LiveSample::default() });
    odd.feed(sample(1));
    let mut many = LiveView::new("many", Style::PLAIN);
    let mut crowd = sample(5);
    crowd.targets = crowd.targets.iter().cycle().take(64).cloned().collect();
    many.feed(crowd);
    for view in [LiveView::new("empty", Style::PLAIN), view(Style::PLAIN, 1), view(ASCII, 2000), odd, many] {
        for (width, height) in
            [(0, 0), (1, 1), (1, 40), (200, 1), (3, 3), (8, 4), (20, 7), (13, 11), (250, 70)]
        {
            let text = drawn(&view, width, height).0;
            assert!(!text.contains('\u{1b}') && !text.contains('\u{202e}'));
        }
    }
}

#[test]
fn ascii_is_ascii_and_colours_are_asked_for() {
    let (text, coloured) = drawn(&view(ASCII, 50), 100, 30);
    assert!(text.is_ascii(), "{text}");
    assert!(!coloured);
    assert!(drawn(&view(Style { colour: true, ..Style::PLAIN }, 50), 100, 30).1);
}

#[test]
fn rates_are_of_the_time_between_two_looks() {
    let (text, _) = drawn(&view(Style::PLAIN, 100), 120, 30);
    let row =
        |name: &str| text.lines().rev().find(|line| line.trim_start().starts_with(name)).unwrap().to_owned();
    assert!(row("tiered+cache").contains("1,250") || row("tiered+cache").contains("1,260"), "{text}");
    assert!(row("plain HDD").contains(" 200 "), "{text}");
    assert!(text.contains("measuring  10 s of 60 s, 50 s left"), "{text}");
}

#[test]
fn a_long_run_keeps_few_points_and_all_of_its_time() {
    let view = view(Style::PLAIN, 20_000);
    for line in view.lines.iter().flatten().filter(|line| !line.is_empty()) {
        assert!(line.len() < 600, "{}", line.len());
        assert!(line[0].0 < 10.0 && line.last().unwrap().0 > 1_900.0);
        assert!(line.iter().all(|point| (point.1 / line[0].1 - 1.0).abs() < 0.1));
    }
}

#[test]
fn a_load_that_was_asked_to_stop_says_so() {
    let mut view = view(Style::PLAIN, 10);
    view.stopping();
    assert!(drawn(&view, 80, 24).0.contains("stopping"));
}

#[test]
fn q_and_ctrl_c_stop_and_other_keys_do_not() {
    let key = |code, modifiers| is_stop(KeyEvent::new(code, modifiers));
    assert!(key(KeyCode::Char('q'), KeyModifiers::NONE));
    assert!(key(KeyCode::Char('c'), KeyModifiers::CONTROL));
    assert!(!key(KeyCode::Char('c'), KeyModifiers::NONE));
    assert!(!key(KeyCode::Char('x'), KeyModifiers::CONTROL));
}

#[test]
fn figures_that_come_at_times_of_their_own_are_rated_by_those() {
    let look = |elapsed: f64, taken_at: f64, operations: u64| LiveSample {
        elapsed,
        targets: vec![LiveTarget {
            name: "host".to_owned(),
            application: LiveApplication { operations, ..LiveApplication::default() },
            taken_at: Some(taken_at),
            ..LiveTarget::default()
        }],
        ..LiveSample::default()
    };
    let mut view = LiveView::new("many", ASCII);
    for (elapsed, taken_at, operations, iops) in
        [(1.3, 1.0, 100, 100.0), (1.4, 1.0, 100, 100.0), (1.5, 1.0, 100, 100.0), (2.2, 2.0, 300, 200.0)]
    {
        view.feed(look(elapsed, taken_at, operations));
        assert_eq!(view.rates[0].map(|rates| rates.iops), Some(iops), "after {elapsed} s");
    }
}
