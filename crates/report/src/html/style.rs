//! Styles of the lines of a chart. No two have the same colour, dashes or marker, so that colour is never the
//! only difference. `report.css` has the colours, and `report.js` draws the same markers.

/// Number of distinguishable lines in a chart.
pub(super) const STYLES: usize = 8;

/// Dashes of each style, on and off, in pixels.
const DASHES: [&str; STYLES] = ["", "8 3", "2 3", "9 3 2 3", "5 2", "12 4", "1 2", "6 2 2 2 2 2"];

/// Marker of each style around the middle of its sample. Those of the second half are open.
const MARKERS: [&str; STYLES] = [
    "M19 2.5a3.5 3.5 0 1 0 .01 0z",
    "M16 3h6v6h-6z",
    "M19 2l4 7h-8z",
    "M19 1.5l4.5 4.5-4.5 4.5-4.5-4.5z",
    "M19 2.5a3.5 3.5 0 1 0 .01 0z",
    "M16 3h6v6h-6z",
    "M16 3l6 6M22 3l-6 6",
    "M19 2v8M15 6h8",
];

/// Returns a sample of the style of the line at `index`, for a legend.
pub(super) fn sample(index: usize) -> String {
    let style = index % STYLES;
    let fill = if style < STYLES / 2 { "currentColor" } else { "var(--paper)" };
    format!(
        r#"<svg class="sample" viewBox="0 0 38 12" style="color:var(--series-{})" aria-hidden="true"><path d="M0 6H38" stroke-dasharray="{}"/><path d="{}" fill="{fill}"/></svg>"#,
        style + 1,
        DASHES[style],
        MARKERS[style]
    )
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn no_two_styles_share_a_colour_dashes_or_a_marker() {
        let samples: HashSet<String> = (0..STYLES).map(sample).collect();
        assert_eq!(samples.len(), STYLES);
        assert_eq!(DASHES.iter().collect::<HashSet<_>>().len(), STYLES);
        let markers: HashSet<(&str, bool)> =
            MARKERS.iter().enumerate().map(|(index, marker)| (*marker, index < STYLES / 2)).collect();
        assert_eq!(markers.len(), STYLES);
        let script = include_str!("../../assets/report.js");
        for dashes in DASHES.iter().filter(|dashes| !dashes.is_empty()) {
            let list = format!("[{}]", dashes.replace(' ', ", "));
            assert!(script.contains(&list), "the script draws other dashes than {list}");
        }
    }

    /// Checks the colours of both themes against their backgrounds by the contrast of WCAG 2, and against
    /// each other in lightness or hue for red-green colour blindness (Viénot, Brettel and Mollon 1999).
    #[test]
    fn colours_are_seen_on_their_ground_and_apart() {
        let css = include_str!("../../assets/report.css");
        let themes: Vec<Vec<[f64; 3]>> = css
            .lines()
            .filter(|line| line.contains("--series-1:"))
            .map(|line| {
                let colours = line.split(';').filter(|part| part.trim().starts_with("--series-"));
                colours.map(|part| linear(part.rsplit('#').next().unwrap())).collect()
            })
            .collect();
        assert_eq!(themes.len(), 3, "light, dark by preference, dark by choice");
        assert_eq!(themes[1], themes[2]);
        for (theme, ground) in [(&themes[0], "fcfcfa"), (&themes[1], "141619")] {
            assert_eq!(theme.len(), STYLES);
            for (index, colour) in theme.iter().enumerate() {
                let (one, other) = (luminance(*colour), luminance(linear(ground)));
                let contrast = (one.max(other) + 0.05) / (one.min(other) + 0.05);
                assert!(contrast >= 3.0, "series {} on {ground}: {contrast:.2}", index + 1);
                for (second, other) in theme.iter().enumerate().skip(index + 1) {
                    for seen in [deuteranope, protanope] {
                        let (a, b) = (seen(*colour), seen(*other));
                        let apart = (0..3).map(|i| (a[i].cbrt() - b[i].cbrt()).powi(2)).sum::<f64>().sqrt();
                        assert!(apart > 0.05, "series {} and {}: {apart:.3}", index + 1, second + 1);
                    }
                }
            }
        }
    }

    fn linear(hex: &str) -> [f64; 3] {
        let channel = |at: usize| {
            let value = f64::from(u8::from_str_radix(&hex.trim()[at..at + 2], 16).unwrap()) / 255.0;
            if value <= 0.04045 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
        };
        [channel(0), channel(2), channel(4)]
    }

    fn luminance([r, g, b]: [f64; 3]) -> f64 {
        0.2126 * r + 0.7152 * g + 0.0722 * b
    }

    fn deuteranope([r, g, b]: [f64; 3]) -> [f64; 3] {
        let yellow = 0.29275 * r + 0.70725 * g;
        [yellow, yellow, (-0.02234 * r + 0.02234 * g + b).max(0.0)]
    }

    fn protanope([r, g, b]: [f64; 3]) -> [f64; 3] {
        let yellow = 0.11238 * r + 0.88762 * g;
        [yellow, yellow, (0.00401 * r - 0.00401 * g + b).max(0.0)]
    }
}
