//! A server on its own unix socket, in a thread, until the test is over.

use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;

use plumb_block::{Bytes, Device};
use plumb_serve::nbd::server::{Export, Listener, Options, Server, Stopper};

use crate::nbd_server::memory::memory;

pub(crate) struct RunningServer {
    pub(crate) server: Arc<Server>,
    pub(crate) socket: PathBuf,
    stopper: Stopper,
    thread: Option<JoinHandle<()>>,
    _directory: tempfile::TempDir,
}

pub(crate) fn export(name: &str, device: Arc<dyn Device>) -> Export {
    Export { name: name.to_owned(), description: "a test".to_owned(), device }
}

impl RunningServer {
    pub(crate) fn start(exports: Vec<Export>, options: Options) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let socket = directory.path().join("s");
        let listener = Listener::unix(&socket).unwrap();
        Self::start_on(exports, options, vec![listener], socket, directory)
    }

    pub(crate) fn start_on(
        exports: Vec<Export>,
        options: Options,
        listeners: Vec<Listener>,
        socket: PathBuf,
        directory: tempfile::TempDir,
    ) -> Self {
        let server = Arc::new(Server::new(exports, options).unwrap());
        let stopper = server.stopper();
        let serving = Arc::clone(&server);
        let thread = std::thread::spawn(move || serving.serve(listeners).unwrap());
        Self { server, socket, stopper, thread: Some(thread), _directory: directory }
    }

    pub(crate) fn of_memory(size: Bytes) -> Self {
        Self::start(vec![export("disk", memory(size))], Options::default())
    }

    /// Returns the URI of the server.
    pub(crate) fn uri(&self) -> String {
        format!("nbd+unix:///?socket={}", self.socket.display())
    }

    pub(crate) fn stop(&mut self) {
        self.stopper.stop();
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}

impl Drop for RunningServer {
    fn drop(&mut self) {
        self.stopper.stop();
        if let Some(thread) = self.thread.take() {
            let ended = thread.join();
            if !std::thread::panicking() {
                ended.unwrap();
            }
        }
    }
}
