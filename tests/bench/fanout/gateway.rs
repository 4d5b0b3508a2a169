//! The gateway that is measured, as its subscribers and its publisher use it.

use futures_util::StreamExt;

use super::AnyError;
use super::callbacks::CallbackServer;
use super::program::{LOOK_AGAIN, Program};

/// Registrations in progress at once.
const REGISTERED_TOGETHER: usize = 64;

/// It runs until it is dropped.
pub(crate) struct Gateway {
    program: Program,
}

impl Gateway {
    /// Starts one, and waits until it takes requests.
    pub(crate) async fn start(database: &str) -> Result<Gateway, AnyError> {
        Ok(Gateway { program: Program::start(database, &[]).await? })
    }

    /// Registers all subscribers, some at a time.
    pub(crate) async fn register_all(
        &self,
        callbacks: &CallbackServer,
        many: usize,
    ) -> Result<(), AnyError> {
        let registering = (0..many).map(|n| self.register(callbacks, n));
        let mut registering =
            futures_util::stream::iter(registering).buffer_unordered(REGISTERED_TOGETHER);
        while let Some(registered) = registering.next().await {
            registered?;
        }
        Ok(())
    }

    async fn register(&self, callbacks: &CallbackServer, n: usize) -> Result<(), AnyError> {
        let (port, topic, domain) =
            (callbacks.port().to_string(), callbacks.topic(), callbacks.domain(n));
        let path = format!("/{n}");
        let mut form = vec![
            ("port", port.as_str()),
            ("path", &path),
            ("protocol", "http-post"),
            ("url1", &topic),
        ];
        // Whoever names no domain is notified at the address it registers from.
        if callbacks.has_own_addresses() {
            form.push(("domain", &domain));
        }
        let answer = self.program.post("/pleaseNotify", &form).await?;
        if answer.contains("success=\"true\"") { Ok(()) } else { Err(answer.into()) }
    }

    /// Says that the feed has changed.
    pub(crate) async fn ping(&self, topic: &str) -> Result<(), AnyError> {
        let answer = self.program.post("/ping", &[("url", topic)]).await?;
        if answer.contains("success=\"true\"") { Ok(()) } else { Err(answer.into()) }
    }

    /// Waits until nobody is owed anything.
    pub(crate) async fn rested(&self) -> Result<(), AnyError> {
        loop {
            let metrics =
                self.program.client().get(format!("{}/metrics", self.program.url())).send().await?;
            if metrics.text().await?.contains("\nfeedgate_subscriptions_due 0\n") {
                return Ok(());
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }

    /// The processor time it has taken so far, in seconds.
    pub(crate) fn cpu(&self) -> Result<f64, AnyError> {
        self.program.cpu()
    }

    /// The most memory it ever held, in MiB.
    pub(crate) fn peak_mib(&self) -> Result<f64, AnyError> {
        self.program.memory_mib("VmHWM")
    }
}
