//! The host groups of publishers' servers: which group is claimed, which is not polled now, and
//! why.
//!
//! A group is claimed by one node at a time: its row is claimed together with a resource of it,
//! renewed with that claim, and released when that poll is recorded. A transaction that locks rows
//! of resources and of groups locks the resources first, or skips locked rows.

pub(crate) mod backoff;
pub(crate) mod prune;
mod redirected;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::Duration;

use chrono::{DateTime, Utc};
use futures_util::future::try_join_all;
use url::Url;

use self::backoff::Pause;
use super::engine::lease::ClaimLease;
use super::engine::row::Row;
use super::engine::sql::{self, Value, params};
use super::engine::tx::Tx;
use crate::Store;
use feedgate_core::host::{Host, HostBackoff, HostRefusal, PausedHost, RequestAdmission};
use feedgate_core::host_groups::HostGroups;
use feedgate_core::resource::ResourceId;
use feedgate_core::store::StoreError;
use feedgate_protocol::robots::Robots;

/// The number of rows updated at once when the table of groups has changed.
const BATCH: i64 = 1_000;

/// The state of publishers' servers.
impl Store {
    /// Returns the group of servers of `url` (see [`host_groups`](feedgate_core::host_groups)).
    pub fn group(&self, url: &str) -> String {
        // Every polled address was a topic or the target of a redirect, and both were parsed.
        Url::parse(url).map(|url| self.shared.groups.name(&url)).unwrap_or_default()
    }

    /// Returns the state of a group.
    pub async fn host(&self, group: &str) -> Result<Host, StoreError> {
        let group = group.to_owned();
        self.shared
            .read(move |tx| Box::pin(async move { Ok(known(tx, &group, "").await?.0) }))
            .await
    }

    /// Returns the groups that are left alone at `now`, those with the shortest wait first, at most
    /// `limit`.
    pub async fn paused_hosts(
        &self,
        now: DateTime<Utc>,
        limit: usize,
    ) -> Result<Vec<PausedHost>, StoreError> {
        const PAUSED: &str = "
            select host, backoff_until, backoffs
              from hosts
             where backoff_until > $1
             order by backoff_until
             limit $2";
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let rows = self.shared.rows(PAUSED, params![now, limit]).await?;
        let paused = rows.into_iter().map(|mut row| {
            Ok(PausedHost { group: row.text()?, until: row.time()?, pauses: row.small()? })
        });
        paused.collect()
    }

    /// Records that a URL was refused, and decides whether its whole group is paused (P26 to P28).
    /// In that case, the polls that are due before the end of the pause are postponed, with the
    /// reason in the status, so that they resume one by one.
    pub async fn record_refusal(
        &self,
        refused: &HostRefusal,
    ) -> Result<Option<HostBackoff>, StoreError> {
        let least = self.shared.groups.spacing(&refused.group);
        let noted = refused.clone();
        let is_anonymous =
            !refused.was_read && self.registrant_of(refused.resource).await?.is_known();
        let decided = self
            .shared
            .write(move |tx| Box::pin(backoff::record_refusal(tx, (noted, is_anonymous), least)));
        let Some(backoff) = decided.await? else { return Ok(None) };
        if self.only_cell().is_none() {
            let paused = self.cells.iter().enumerate().map(|(first, cell)| {
                cell.pause_group(Pause::new(refused, &backoff, (first, self.cells.len())))
            });
            try_join_all(paused).await?;
        }
        Ok(Some(backoff))
    }

    /// Takes a time of a group for a request that a redirect leads there, if the group has one now. Own
    /// resources of the group have at least every second time.
    pub async fn admit_request(
        &self,
        group: &str,
        now: DateTime<Utc>,
    ) -> Result<RequestAdmission, StoreError> {
        let db = &self.shared;
        let (group, groups) = (group.to_owned(), db.groups.clone());
        let admitted = db.write(move |tx| {
            Box::pin(async move { redirected::admit(tx, &groups, group, now).await })
        });
        admitted.await
    }

    /// Ends the claim of a group whose poll a redirect has led to another group. The interval between two
    /// polls of the group stays.
    pub async fn leave_group(&self, group: &str) -> Result<(), StoreError> {
        let group = group.to_owned();
        self.shared.write(move |tx| Box::pin(redirected::leave(tx, group))).await
    }

    /// Records that a group answered well to a request for a resource of another group.
    pub async fn record_good_answer(
        &self,
        group: &str,
        at: DateTime<Utc>,
    ) -> Result<(), StoreError> {
        let group = group.to_owned();
        self.shared.write(move |tx| Box::pin(redirected::record_good_answer(tx, group, at))).await
    }

    /// Postpones one resource until `until`, with the reason in its status.
    pub async fn put_off(
        &self,
        id: ResourceId,
        until: DateTime<Utc>,
        why: &str,
    ) -> Result<(), StoreError> {
        let db = self.of_number(id.0);
        let why = why.to_owned();
        let put_off = db.write(move |tx| {
            Box::pin(async move { put_off(tx, vec![(id.0, tx.at(until))], &why).await })
        });
        put_off.await
    }

    /// Returns the last `robots.txt` of a server (scheme, host and port), and when it was fetched.
    pub async fn robots(
        &self,
        origin: &str,
    ) -> Result<Option<(Robots, DateTime<Utc>)>, StoreError> {
        const FIND: &str = "select rules, fetched_at from robots where origin = $1";
        let rows = self.shared.rows(FIND, params![origin]).await?;
        let found = rows.into_iter().next().map(|mut row| Ok((row.json()?, row.time()?)));
        found.transpose()
    }

    /// Stores the `robots.txt` of a server.
    pub async fn save_robots(
        &self,
        origin: &str,
        robots: &Robots,
        now: DateTime<Utc>,
    ) -> Result<(), StoreError> {
        let (origin, robots) = (origin.to_owned(), robots.clone());
        let keep = self.shared.write(move |tx| {
            Box::pin(async move { save_robots(tx, (&origin, &robots), now).await })
        });
        keep.await
    }
}

async fn save_robots(
    tx: &Tx<'_>,
    (origin, robots): (&str, &Robots),
    now: DateTime<Utc>,
) -> Result<(), StoreError> {
    const KEEP: &str = "
        insert into robots (origin, fetched_at, rules) values ($1, $2, $3)
            on conflict (origin) do update
           set fetched_at = excluded.fetched_at, rules = excluded.rules";
    tx.execute(KEEP, params![origin, now, sql::json(robots)]).await.map(drop)
}

/// Claims these host groups: until the end of the lease if one poll of a group runs at a time, or
/// else until the next one may begin. Returns the groups that no other node has claimed meanwhile.
pub(super) async fn claim_groups(
    tx: &Tx<'_>,
    groups: &HostGroups,
    mut names: Vec<String>,
    (lease, is_alone): (ClaimLease, bool),
) -> Result<HashSet<String>, StoreError> {
    const HOLD: &str = "
        insert into hosts (host, last_fetch_at, fetch_interval, next_fetch_at)
        {values host, last_fetch_at, fetch_interval, next_fetch_at}
            on conflict (host) do update
           set last_fetch_at = excluded.last_fetch_at, fetch_interval = excluded.fetch_interval,
               next_fetch_at = excluded.next_fetch_at
         where hosts.next_fetch_at <= excluded.last_fetch_at";
    if tx.has_clock_moved(&lease) {
        return Ok(HashSet::new());
    }
    // All nodes lock groups in one order, so that two nodes do not wait for each other.
    names.sort_unstable();
    names.dedup();
    let pauses = pauses(tx, groups, &names, lease.now).await?;
    let begins = micros(lease.now);
    let free_at = |pause: &i64| if is_alone { micros(lease.ends) } else { begins + pause };
    let columns = [
        ("next_fetch_at", Value::Ints(pauses.iter().map(free_at).collect())),
        ("last_fetch_at", Value::Ints(vec![begins; pauses.len()])),
        ("fetch_interval", Value::Ints(pauses)),
        ("host", Value::Texts(names.clone())),
    ];
    if !tx.is_shared() {
        // SQLite has one writer, so a group that was free when its resource was picked is still
        // free.
        tx.execute_rows(HOLD, &[], &columns).await?;
        return Ok(names.into_iter().collect());
    }
    let held = tx.query_rows(&format!("{HOLD} returning host"), &[], &columns).await?;
    held.into_iter().map(|mut row| row.text()).collect()
}

/// Extends the claims of the groups whose polls are in progress. A claim that was given back stays so.
pub(super) async fn renew_groups(
    tx: &Tx<'_>,
    mut names: Vec<String>,
    lease: ClaimLease,
) -> Result<(), StoreError> {
    const RENEW: &str = "
        update hosts
           set next_fetch_at = $1
        {from rows}
         where hosts.host = {given host} and next_fetch_at < $1 and next_fetch_at > $2";
    // Groups are locked in the order in which they are claimed, or two nodes would wait for each
    // other.
    names.sort_unstable();
    names.dedup();
    let params = params![tx.at(lease.ends), tx.at(lease.now)];
    tx.execute_rows(RENEW, params, &[("host", Value::Texts(names))]).await.map(drop)
}

/// Claims a host group, whether it is free or not, for a resource that is polled out of turn.
pub(super) async fn hold_group(
    tx: &Tx<'_>,
    groups: &HostGroups,
    name: String,
    lease: ClaimLease,
) -> Result<(), StoreError> {
    const HOLD: &str = "
        insert into hosts (host, last_fetch_at, fetch_interval, next_fetch_at) values ($1, $2, $3, $4)
            on conflict (host) do update
           set last_fetch_at = excluded.last_fetch_at, fetch_interval = excluded.fetch_interval,
               next_fetch_at = case when hosts.next_fetch_at < excluded.next_fetch_at
                                    then excluded.next_fetch_at else hosts.next_fetch_at end";
    let pause = pauses(tx, groups, std::slice::from_ref(&name), lease.now).await?;
    let pause = pause.first().copied().unwrap_or_default();
    let (now, ends) = (tx.at(lease.now), tx.at(lease.ends));
    tx.execute(HOLD, params![name, now, pause, ends]).await.map(drop)
}

/// Releases groups whose polls have ended: the next poll may begin after the pause of its group, or
/// after its backoff. Each result states whether the group responded well, and when.
pub(super) async fn release(
    tx: &Tx<'_>,
    groups: &BTreeMap<&str, (bool, DateTime<Utc>)>,
) -> Result<(), StoreError> {
    // Groups are locked in the order in which they are claimed, or two nodes would wait for each
    // other.
    const LOCK: &str = "
        select host from hosts where host in ({texts $1}) order by host collate \"C\" {for update}";
    const RELEASE: &str = "
        update hosts
           set next_fetch_at = case when backoff_until > last_fetch_at + fetch_interval
                                    then backoff_until
                                    else last_fetch_at + fetch_interval end,
               backoffs = case when {given well} = 1 then 0 else backoffs end,
               last_success_at = case when {given well} = 1 then {given at}
                                      else last_success_at end
          {from rows}
         where hosts.host = {given host}";
    let names: Vec<String> = groups.keys().map(|&name| name.to_owned()).collect();
    if tx.is_shared() && names.len() > 1 {
        tx.query(LOCK, &[Value::Texts(names.clone())]).await?;
    }
    let columns = [
        ("host", Value::Texts(names)),
        ("well", Value::Ints(groups.values().map(|(well, _)| i64::from(*well)).collect())),
        ("at", Value::Ints(groups.values().map(|(_, at)| micros(*at)).collect())),
    ];
    tx.execute_rows(RELEASE, params![], &columns).await.map(drop)
}

/// Returns the microseconds between two fetches from each group: the configured pause, or the
/// learned one.
async fn pauses(
    tx: &Tx<'_>,
    groups: &HostGroups,
    names: &[String],
    now: DateTime<Utc>,
) -> Result<Vec<i64>, StoreError> {
    const LEARNED: &str = "
        select host, learned_interval, last_backoff_at from hosts
         where host in ({texts $1}) and last_backoff_at is not null";
    let mut learned = HashMap::new();
    for mut row in tx.query(LEARNED, &[Value::Texts(names.to_vec())]).await? {
        let name = row.text()?;
        let (spacing, slowed_at) = (duration(row.int()?), row.opt_time()?);
        learned.insert(name, Host { spacing, slowed_at, ..Host::default() });
    }
    let pause = |name: &String| {
        let least = groups.spacing(name);
        let host = learned.get(name).copied().unwrap_or_default();
        i64::try_from(host.spacing_at(least, now).as_micros()).unwrap_or(i64::MAX / 4)
    };
    Ok(names.iter().map(pause).collect())
}

/// Returns what is known of a group, and when it last responded well.
async fn known(
    tx: &Tx<'_>,
    name: &str,
    lock: &str,
) -> Result<(Host, Option<DateTime<Utc>>), StoreError> {
    let known = format!(
        "select backoff_until, learned_interval, last_backoff_at, backoffs, last_success_at
           from hosts where host = $1 {lock}"
    );
    let Some(mut row) = tx.first(&known, params![name]).await? else {
        return Ok((Host::default(), None));
    };
    let host = Host {
        cool_until: row.opt_time()?,
        spacing: duration(row.int()?),
        slowed_at: row.opt_time()?,
        slow_downs: row.small()?,
    };
    Ok((host, row.opt_time()?))
}

/// Delays each resource until its time, and stores the reason.
async fn put_off(
    tx: &Tx<'_>,
    waiting: Vec<(i64, DateTime<Utc>)>,
    why: &str,
) -> Result<(), StoreError> {
    const PUT_OFF: &str = "
        update resources
           set due_at = {given at}, next_fetch = {given at}, delay_reason = $1
          {from rows}
         where resources.id = {given id}";
    let (ids, times) = waiting.into_iter().map(|(id, at)| (id, micros(at))).unzip();
    let columns = [("id", Value::Ints(ids)), ("at", Value::Ints(times))];
    tx.execute_rows(PUT_OFF, params![why], &columns).await.map(drop)
}

/// Assigns the resources to their groups again, if the table of groups has changed since the last
/// time.
pub(super) async fn regroup(tx: &Tx<'_>, groups: &HostGroups) -> Result<(), StoreError> {
    const SAME: &str = "select 1 from database_properties where name = 'groups' and value = $1";
    const KEEP: &str = "
        insert into database_properties (name, value) values ('groups', $1)
            on conflict (name) do update set value = excluded.value";
    const SOME: &str = "
        select id, fetch_url, host from resources where id > $1 order by id limit $2";
    const MOVE: &str = "
        update resources set host = {given host} {from rows} where resources.id = {given id}";
    let fingerprint = groups.fingerprint();
    if tx.first(SAME, params![fingerprint.as_str()]).await?.is_some() {
        return Ok(());
    }
    let mut after = i64::MIN;
    loop {
        let some = tx.query(SOME, params![after, BATCH]).await?;
        let Some(found) = some.len().checked_sub(1) else { break };
        let (mut ids, mut names) = (Vec::new(), Vec::new());
        for (n, mut row) in some.into_iter().enumerate() {
            let (id, name) = regrouped(&mut row, groups)?;
            if let Some(name) = name {
                ids.push(id);
                names.push(name);
            }
            if n == found {
                after = id;
            }
        }
        let columns = [("id", Value::Ints(ids)), ("host", Value::Texts(names))];
        tx.execute_rows(MOVE, &[], &columns).await?;
    }
    tx.execute(KEEP, params![fingerprint]).await.map(drop)
}

/// Returns the number of a resource, and its group if that has changed.
fn regrouped(row: &mut Row, groups: &HostGroups) -> Result<(i64, Option<String>), StoreError> {
    let (id, url, held) = (row.int()?, row.text()?, row.text()?);
    let name = Url::parse(&url).map(|url| groups.name(&url)).unwrap_or_default();
    Ok((id, Some(name).filter(|name| *name != held)))
}

fn micros(at: DateTime<Utc>) -> i64 {
    at.timestamp_micros()
}

fn duration(micros: i64) -> Duration {
    Duration::from_micros(u64::try_from(micros).unwrap_or_default())
}
