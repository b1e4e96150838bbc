//! Common parts of serving a cache or a drive: its exports, and its failures.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;
use plumb_block::FailureKind;
use plumb_serve::named::{Controls, Service, ServiceError, ServiceOptions};
use plumb_serve::nbd::server::{ListenAddress, PATH_MAX_BYTES};
use plumb_serve::nbd::tls::ServerTls;
use plumb_state::places::kernel_file_system;
use plumb_state::whole_file::parent_of;

use crate::arguments::exports::ExportArguments;
use crate::exit::{Refusal, refuse_if};
use crate::{stop, terminal};

/// Returns the options of a service with the typed exports, without a name. `what` is the kind of device, for
/// messages.
pub(super) fn service_options(arguments: &ExportArguments, what: &str) -> anyhow::Result<ServiceOptions> {
    let nbd = addresses(arguments)?;
    let message =
        format!("nobody could use this {what}: give --nbd SOCKET, --nbd-tcp ADDRESS, --attach or --ublk");
    refuse_if!(nbd.is_empty() && !is_block_device(arguments), Usage, message);
    let encryption = encryption(arguments, &nbd)?;
    Ok(ServiceOptions {
        directory: PathBuf::new(),
        name: None,
        kind: what.to_owned(),
        nbd,
        encryption,
        say: Arc::new(|line| terminal::say(&format!("plumb: {line}"))),
        attach: arguments.attach,
        ublk: None,
    })
}

/// Returns the addresses for NBD.
fn addresses(arguments: &ExportArguments) -> anyhow::Result<Vec<ListenAddress>> {
    let mut addresses = Vec::new();
    for path in &arguments.nbd {
        if path.to_string_lossy().contains("://") {
            let shown = path.display();
            let message =
                format!("--nbd {shown}: expected the path of a unix socket; TCP is --nbd-tcp ADDRESS");
            return Err(Refusal::new(FailureKind::Usage, message).into());
        }
        let path = std::path::absolute(path).context("--nbd")?;
        takes_socket(&path)?;
        addresses.push(ListenAddress::Unix(path));
    }
    addresses.extend(arguments.nbd_tcp.iter().copied().map(ListenAddress::Tcp));
    let is_repeated = |(at, address): (usize, &ListenAddress)| addresses[..at].contains(address);
    if addresses.iter().enumerate().any(is_repeated) {
        return Err(Refusal::new(FailureKind::Usage, "--nbd or --nbd-tcp names one place twice").into());
    }
    Ok(addresses)
}

/// Refuses a path at which no socket can be created.
fn takes_socket(path: &Path) -> Result<(), Refusal> {
    let (shown, directory) = (path.display(), parent_of(path));
    let refusal = |exit, why: String| Refusal::new(exit, format!("--nbd {shown}: {why}"));
    if path.as_os_str().len() > PATH_MAX_BYTES {
        let why = format!("the path of a socket has at most {PATH_MAX_BYTES} bytes: choose a shorter one");
        return Err(refusal(FailureKind::Usage, why));
    }
    if !directory.is_dir() {
        let why =
            format!("the directory {} does not exist: make it, or name another path", directory.display());
        return Err(refusal(FailureKind::Usage, why));
    }
    match kernel_file_system(directory) {
        Some(system) => {
            let why = format!(
                "{} is in a file system of the kernel ({system}), where no socket can be made: name a path in another directory",
                directory.display()
            );
            Err(refusal(FailureKind::Refused, why))
        }
        None => Ok(()),
    }
}

/// Returns the encryption of TCP, which is mandatory for addresses that other machines can reach.
fn encryption(arguments: &ExportArguments, addresses: &[ListenAddress]) -> anyhow::Result<Option<ServerTls>> {
    let Some(directory) = &arguments.tls_certificates else {
        return match addresses.iter().find_map(ListenAddress::beyond_this_machine) {
            Some(address) => {
                let message = format!(
                    "--nbd-tcp {address}: other machines could read and write the drive: give --tls-certificates DIR, or an \
                     address of this machine alone, such as 127.0.0.1"
                );
                Err(Refusal::new(FailureKind::Refused, message).into())
            }
            None => Ok(None),
        };
    };
    let directory = std::path::absolute(directory).context("--tls-certificates")?;
    let encryption = ServerTls::read(&directory, arguments.tls_verify_peer.is_on());
    encryption.map(Some).map_err(|error| {
        let error = anyhow::Error::new(error);
        Refusal::new(FailureKind::Usage, format!("--tls-certificates: {error:#}")).into()
    })
}

/// Returns true if the device is exported as a block device of this machine.
const fn is_block_device(arguments: &ExportArguments) -> bool {
    arguments.attach || arguments.ublk
}

/// Sets the message about the block device that stays if a signal ends the process at once.
pub(super) fn name_what_stays<C: Controls>(service: &Service<C>) {
    if let Some(device) = service.block_device() {
        stop::say_at_once(&format!("{device} stays until `plumb restore` removes it"));
    }
}

pub(super) fn refusal(error: ServiceError) -> Refusal {
    let (kind, remedy) = (error.failure(), error.remedy());
    Refusal::new(kind, format!("{:#}{remedy}", anyhow::Error::new(error)))
}
