//! Checks that involve more than one setting.

use super::reader::SettingReader;
use super::settings::*;

impl Config {
    /// Reports settings that contradict each other.
    pub(super) fn check_together(&self, reader: &mut SettingReader<'_>) {
        if self.tls_cert.is_some() != self.tls_key.is_some() {
            let names = [&FEEDGATE_TLS_CERT, &FEEDGATE_TLS_KEY].map(|name| reader.spelled(name));
            reader.faults.push(format!("set both {} and {}, or neither", names[0], names[1]));
        }
        if self.database_password.is_some() && self.database_url().is_none() {
            let names = [&FEEDGATE_DATABASE_PASSWORD, &FEEDGATE_DATABASE];
            let [password, database] = names.map(|name| reader.spelled(name));
            reader.faults.push(format!(
                "{password} is for {database} that is postgres://USER@HOST/DATABASE, without a password"
            ));
        }
        // If a lease ended while its request was in progress, another node would repeat the
        // request.
        let timeouts = [
            (FEEDGATE_DELIVERY_TIMEOUT_S, self.delivery_timeout),
            (FEEDGATE_FETCH_TIMEOUT_S, self.fetch_timeout),
        ];
        for (setting, timeout) in timeouts {
            if self.job_lease <= timeout {
                let names = [&FEEDGATE_JOB_LEASE_S, &setting].map(|name| reader.spelled(name));
                reader.faults.push(format!("{} must be longer than {}", names[0], names[1]));
            }
        }
    }
}
