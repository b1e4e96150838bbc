//! Tests of `plumb agent --stdio` alone: it ends when its controller is lost in any way, and reports how late
//! it started.

use std::io::{Read as _, Write as _};
use std::process::{Child, Stdio};

use serde_json::{Value, json};

use crate::common::{entries, plumb, said, scratch};

/// Returns the next message of an agent.
fn heard(agent: &mut Child) -> Value {
    let stdout = agent.stdout.as_mut().unwrap();
    let mut length = [0; 4];
    stdout.read_exact(&mut length).unwrap();
    let mut body = vec![0; u32::from_be_bytes(length) as usize];
    stdout.read_exact(&mut body).unwrap();
    serde_json::from_slice(&body).unwrap()
}

/// Starts an agent, and reads its first message.
fn agent(heartbeat_ms: u64) -> Child {
    let mut agent = plumb()
        .args(["agent", "--stdio"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let identity = json!({"version": env!("CARGO_PKG_VERSION"), "binary": ""});
    send(&mut agent, &json!({"Hello": {"identity": identity, "heartbeat": heartbeat_ms * 1_000_000}}));
    assert_eq!(heard(&mut agent)["Hello"]["identity"]["version"], env!("CARGO_PKG_VERSION"));
    agent
}

fn send(agent: &mut Child, message: &Value) {
    let body = message.to_string();
    let stdin = agent.stdin.as_mut().unwrap();
    stdin.write_all(&(body.len() as u32).to_be_bytes()).unwrap();
    stdin.write_all(body.as_bytes()).unwrap();
}

#[test]
fn an_agent_that_loses_its_controller_ends_and_leaves_nothing() {
    let place = scratch();
    // The controller is silent, closes the connection or one direction of it, sends garbage, or says
    // good-bye.
    let ends: [(&str, Option<i32>, &str); 5] = [
        ("unread", Some(3), "the controller: the connection ended"),
        ("silent", Some(3), "the controller: it was silent for"),
        ("closed", Some(3), "the controller: the connection ended"),
        ("nonsense", Some(3), "the controller: it does not speak plumb's protocol"),
        ("bye", Some(0), ""),
    ];
    for (how, code, expected) in ends {
        let target = place.path().join(how);
        // A busy machine may be silent for longer than a second before the other cases.
        let mut agent = agent(if how == "silent" { 100 } else { 60_000 });
        let words = format!(
            "targets = [{:?}]\nsize = \"16M\"\nwrite = 100\nduration = \"1h\"\n",
            target.to_str().unwrap()
        );
        let task = json!({"Load": {"words": words, "overwrite": false, "destroy": [], "remove_after": true}});
        send(&mut agent, &json!({"Run": {"task": task}}));
        match how {
            "closed" => drop(agent.stdin.take()),
            "unread" => drop(agent.stdout.take()),
            "nonsense" => agent.stdin.as_mut().unwrap().write_all(b"GET / HTTP/1.1\r\n").unwrap(),
            "bye" => send(&mut agent, &json!("Bye")),
            _ => {}
        }
        let stdin = agent.stdin.take();
        let output = agent.wait_with_output().unwrap();
        drop(stdin);
        assert_eq!(output.status.code(), code, "{how}: {}", said(&output));
        assert!(String::from_utf8_lossy(&output.stderr).contains(expected), "{how}: {}", said(&output));
    }
    assert_eq!(entries(place.path()), [""; 0]);
}

#[test]
fn a_start_that_arrives_late_is_told_as_late() {
    let place = scratch();
    let mut agent = agent(10_000);
    let target = place.path().join("io.dat");
    let words = format!("targets = [{:?}]\nsize = \"1M\"\nduration = \"100ms\"\n", target.to_str().unwrap());
    let task = json!({"Load": {"words": words, "overwrite": false, "destroy": [], "remove_after": true}});
    send(&mut agent, &json!({"Run": {"task": task}}));
    while heard(&mut agent) != json!("Ready") {}
    // A start time in the distant past.
    send(&mut agent, &json!({"Start": {"at": 1}}));
    let late = loop {
        if let Some(late) = heard(&mut agent).pointer("/Begun/late").and_then(Value::as_u64) {
            break late;
        }
    };
    assert!(late > 1_000_000_000, "{late} ns");
    send(&mut agent, &json!("Bye"));
    agent.wait().unwrap();
}
