//! What was handed over, held against what was said.

/// The account of one history.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    /// Which of what was said is to be handed over next.
    next: usize,
    /// Whether the last thing that was handed over may be handed over once more: the reader
    /// died, and had not remembered it.
    may_repeat: bool,
    /// Whether it begins anew, with the oldest there is: the reader was told that its place
    /// is lost, or remembers nothing.
    is_new: bool,
    /// How much of what was said is no longer kept.
    dropped: usize,
    /// What was wrong first.
    wrong: Option<String>,
}

impl Ledger {
    /// The reader begins; `remembers` tells whether it knows where it was.
    pub(super) fn begins(&mut self, remembers: bool) {
        self.is_new = !remembers;
    }

    /// The reader died with something in hand that it has not remembered.
    pub(super) fn died_with_it(&mut self) {
        self.may_repeat = true;
    }

    /// So much of what was said is no longer kept.
    pub(super) fn dropped(&mut self, upto: usize) {
        self.dropped = self.dropped.max(upto);
    }

    /// Something was handed over. `said` is all that was said so far.
    pub(super) fn handed_over(&mut self, what: &str, printed: &[String]) {
        let Some(place) = printed.iter().position(|held| held == what) else {
            return self.is_wrong(format!("{what} was never said"));
        };
        // A cache may still have what was dropped a moment ago.
        let is_beginning = self.is_new && place <= self.next.max(self.dropped);
        let is_repeat = self.may_repeat && place + 1 == self.next;
        if place != self.next && !is_beginning && !is_repeat {
            self.is_wrong(match printed.get(self.next..place) {
                Some(missing) => format!("{missing:?} are missing before {what}"),
                None => format!("{what} again"),
            });
        }
        self.next = place + 1;
        (self.may_repeat, self.is_new) = (false, false);
    }

    /// Nothing more is said, and the reader has come to the end.
    pub(super) fn closed(self, printed: &[String]) -> Result<(), String> {
        match self.wrong {
            Some(wrong) => Err(wrong),
            None if self.next < printed.len() => {
                Err(format!("{:?} were never handed over", &printed[self.next..]))
            }
            None => Ok(()),
        }
    }

    fn is_wrong(&mut self, what: String) {
        self.wrong.get_or_insert(what);
    }
}

#[test]
fn a_ledger_finds_what_is_wrong() {
    let printed: Vec<String> = (0..6).map(|n| format!("e{n}")).collect();
    let all = ["e0", "e1", "e2", "e3", "e4", "e5"];
    let closed = |ledger: Ledger| ledger.closed(&printed);
    let after = |begin: &[&str], then: fn(&mut Ledger), rest: &[&str]| {
        let mut ledger = Ledger::default();
        begin.iter().for_each(|what| ledger.handed_over(what, &printed));
        then(&mut ledger);
        rest.iter().for_each(|what| ledger.handed_over(what, &printed));
        closed(ledger)
    };
    assert_eq!(after(&all, |_| {}, &[]), Ok(()));
    assert_eq!(after(&all[..3], Ledger::died_with_it, &all[2..]), Ok(()));
    assert_eq!(after(&all[..3], |ledger| ledger.begins(true), &all[3..]), Ok(()));
    let lost = |ledger: &mut Ledger| {
        ledger.dropped(5);
        ledger.begins(false);
    };
    assert_eq!(after(&all[..3], lost, &all[5..]), Ok(()));

    assert!(after(&all[..5], |_| {}, &[]).is_err(), "one is missing at the end");
    assert!(after(&all[..3], |_| {}, &all[4..]).is_err(), "one is missing in between");
    assert!(after(&all[..3], |_| {}, &all[2..]).is_err(), "one comes twice");
    assert!(after(&all[..3], Ledger::died_with_it, &all[1..]).is_err(), "two come twice");
    assert!(after(&all[..3], |ledger| ledger.dropped(5), &all[5..]).is_err(), "nobody was told");
    assert!(after(&[], lost, &["e4", "e5", "e3"]).is_err(), "the order is another");
    assert!(after(&all[..3], |ledger| ledger.begins(false), &all[5..]).is_err(), "it is kept");
    assert!(after(&all, |_| {}, &["other"]).is_err(), "it was never said");
}
