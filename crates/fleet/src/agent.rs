//! Agent state machine, without I/O: takes bytes from the controller, returns actions and bytes to send. Its
//! driver executes the tasks.
//!
//! Lease: if the controller is silent for two heartbeats and a second, stdin ends, or an invalid message
//! arrives, the agent stops its task and exits. This covers half-open connections and a killed controller.

use std::io;

use plumb_block::Nanos;
use plumb_load::LoadOutcome;
use plumb_state::frame::{Decoder, encode, silence};

use crate::message::{FromAgent, Identity, Task, TaskResult, ToAgent};

/// Time limit for the controller's first message.
const HELLO_WITHIN: Nanos = Nanos::secs(60);
/// Bytes of a result in one frame. JSON within JSON grows up to sixfold.
const PART: usize = 128 << 10;
/// Number of unsent bytes above which figures are skipped. Later figures include them.
const WAITING_MAX: usize = 256 << 10;

/// Longest heartbeat that an agent accepts.
pub const HEARTBEAT_MAX: Nanos = Nanos::secs(60);

/// Returns the longest accepted silence of a peer with this heartbeat.
pub const fn silence_max(heartbeat: Nanos) -> Nanos {
    Nanos(heartbeat.0.saturating_mul(2).saturating_add(1_000_000_000))
}

/// Action for the driver of an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Start preparing the task.
    Run(Task),
    /// Start the prepared task at this time, by the agent's clock.
    Start(Nanos),
    /// End the task early, with a result.
    Stop,
    /// End the task early, restore its changes and exit, for this reason; `None` if all is done.
    End(Option<String>),
}

/// Agent of one controller.
#[derive(Debug)]
pub struct Agent {
    identity: Identity,
    decoder: Decoder,
    out: Vec<u8>,
    /// Heartbeat of the controller; `None` before its first message.
    heartbeat: Option<Nanos>,
    heard: Nanos,
    is_busy: bool,
    has_ended: bool,
}

impl Agent {
    /// Creates an agent at time `now`, before any message.
    pub fn new(identity: Identity, now: Nanos) -> Self {
        Self {
            identity,
            decoder: Decoder::default(),
            out: Vec::new(),
            heartbeat: None,
            heard: now,
            is_busy: false,
            has_ended: false,
        }
    }

    /// Processes received bytes.
    pub fn receive(&mut self, bytes: &[u8], now: Nanos) -> Vec<Action> {
        self.heard = now;
        self.decoder.push(bytes);
        let mut actions = Vec::new();
        while !self.has_ended {
            match self.decoder.take::<ToAgent>() {
                Ok(Some(message)) => actions.extend(self.take_in(message, now)),
                Ok(None) => break,
                Err(error) => actions.extend(self.fail(&error)),
            }
        }
        actions
    }

    fn take_in(&mut self, message: ToAgent, now: Nanos) -> Option<Action> {
        match message {
            ToAgent::Hello { heartbeat, .. } => {
                // A controller cannot extend the lease beyond this.
                self.heartbeat = Some(heartbeat.min(HEARTBEAT_MAX));
                self.say(&FromAgent::Hello { identity: self.identity.clone() });
                None
            }
            ToAgent::Ping { number } => {
                self.say(&FromAgent::Pong { number, received: now, sent: now });
                None
            }
            ToAgent::Here => None,
            ToAgent::Run { .. } if self.is_busy || self.heartbeat.is_none() => {
                self.end(Some("the controller sent a task out of turn".to_owned()))
            }
            ToAgent::Run { task } => {
                self.is_busy = true;
                Some(Action::Run(task))
            }
            ToAgent::Start { at } => Some(Action::Start(at)),
            ToAgent::Stop => Some(Action::Stop),
            ToAgent::Bye => self.end(None),
        }
    }

    /// Records that the controller closed its end of the connection.
    pub fn closed(&mut self) -> Option<Action> {
        self.fail(&self.decoder.end())
    }

    /// Ends the agent if the controller has been silent for too long.
    pub fn tick(&mut self, now: Nanos) -> Option<Action> {
        let seconds = now.since(self.heard).as_secs_f64();
        (now >= self.deadline()).then(|| self.fail(&silence(seconds))).flatten()
    }

    /// Returns the time of the next [`tick`](Self::tick), unless bytes arrive earlier.
    pub fn deadline(&self) -> Nanos {
        if self.has_ended {
            return Nanos(u64::MAX);
        }
        self.heard.saturating_add(self.heartbeat.map_or(HELLO_WITHIN, silence_max))
    }

    fn fail(&mut self, error: &io::Error) -> Option<Action> {
        self.end(Some(format!("the controller: {error}")))
    }

    fn end(&mut self, because: Option<String>) -> Option<Action> {
        let is_first = !std::mem::replace(&mut self.has_ended, true);
        is_first.then_some(Action::End(because))
    }

    fn say(&mut self, message: &FromAgent) {
        encode(message, &mut self.out);
    }

    /// Reports that the task is ready, and waits for the other hosts.
    pub fn ready(&mut self) {
        self.say(&FromAgent::Ready);
    }

    /// Reports that the task has started, `late` after its start time.
    pub fn begun(&mut self, late: Nanos) {
        self.say(&FromAgent::Begun { late });
    }

    /// Reports interim figures. Skips them if the connection is slower than the figures arrive.
    pub fn figures(&mut self, outcome: LoadOutcome) {
        if self.out.len() < WAITING_MAX {
            self.say(&FromAgent::Figures(Box::new(outcome)));
        }
    }

    /// Reports the end of the task, with its result.
    pub fn result(&mut self, result: &TaskResult) {
        self.is_busy = false;
        let text = serde_json::to_string(result).unwrap_or_default();
        let mut rest = text.as_str();
        loop {
            let end =
                (0..=PART.min(rest.len())).rev().find(|end| rest.is_char_boundary(*end)).unwrap_or_default();
            let (part, more) = rest.split_at(end);
            self.say(&FromAgent::Part { text: part.to_owned(), is_last: more.is_empty() });
            rest = more;
            if rest.is_empty() {
                break;
            }
        }
    }

    /// Returns the bytes to be sent. The caller removes sent bytes from the front.
    pub fn output(&mut self) -> &mut Vec<u8> {
        &mut self.out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agent() -> Agent {
        let identity = Identity { version: "1".into(), binary: "b".into(), boot_id: None };
        let mut agent = Agent::new(identity.clone(), Nanos::ZERO);
        assert!(
            agent
                .receive(&frame(&ToAgent::Hello { identity, heartbeat: Nanos::secs(2) }), Nanos::secs(1))
                .is_empty()
        );
        agent
    }

    fn frame(message: &ToAgent) -> Vec<u8> {
        let mut bytes = Vec::new();
        encode(message, &mut bytes);
        bytes
    }

    #[test]
    fn the_lease_ends_after_two_heartbeats_and_a_second_and_each_byte_renews_it() {
        let mut agent = agent();
        assert_eq!(agent.deadline(), Nanos::secs(6));
        agent.receive(&frame(&ToAgent::Ping { number: 1 })[..2], Nanos::secs(4));
        assert_eq!(agent.tick(Nanos::millis(8_999)), None);
        let because = "the controller: it was silent for 5.0 s".to_owned();
        assert_eq!(agent.tick(Nanos::secs(9)), Some(Action::End(Some(because))));
        assert_eq!(agent.closed(), None, "it ends once");
    }

    #[test]
    fn no_controller_keeps_an_agent_without_a_lease() {
        let mut agent = agent();
        let identity = Identity { version: "1".into(), binary: "b".into(), boot_id: None };
        agent.receive(&frame(&ToAgent::Hello { identity, heartbeat: Nanos(u64::MAX) }), Nanos::secs(1));
        assert_eq!(agent.deadline(), Nanos::secs(1 + 2 * 60 + 1));
    }

    #[test]
    fn it_ends_when_it_is_told_nonsense_or_two_things_at_once() {
        let sent: [(&[u8], &str); 5] = [
            (
                b"GET / HTTP/1.1",
                "it does not speak plumb's protocol: `GET / HTTP/1.1` came, expected the length",
            ),
            (b"\0\0\0\0", r"it does not speak plumb's protocol: `\u{0}\u{0}\u{0}\u{0}` came"),
            (b"\0\0\0\x03{1}", "it sent a message that this version does not know: key must be a string"),
            (b"\0\0\0\x03{", "the connection ended within a message, of which 5 bytes had arrived"),
            (b"", "the connection ended"),
        ];
        for (sent, expected) in sent {
            let mut agent = agent();
            let mut actions = agent.receive(sent, Nanos::secs(2));
            actions.extend(agent.closed());
            let [Action::End(Some(because))] = &actions[..] else { panic!("{actions:?}") };
            assert!(because.starts_with(&format!("the controller: {expected}")), "{because}");
        }
        let mut second = agent();
        let run = frame(&ToAgent::Run {
            task: Task::Command { arguments: vec!["survey".into()], schema: String::new() },
        });
        assert!(matches!(&second.receive(&run, Nanos::secs(2))[..], [Action::Run(_)]));
        assert!(matches!(&second.receive(&run, Nanos::secs(2))[..], [Action::End(Some(_))]));
    }
}
