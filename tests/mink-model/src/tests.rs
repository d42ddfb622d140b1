//! The small scopes and every mutant, in each test run.
use crate::config::{CLAIM_FIRST_PUT, CLAIM_ONE_SEAL, CLAIM_PUT_PROVES, CLAIM_SILENT, Config, Mutant};
use crate::scopes::{BASE, Expect, PAIR, SMALL, TINY, mutants};
use crate::search::{Options, Report, search};
use crate::state::{SIZE, State};

fn run(config: &Config) -> Report {
    search(config, Options { traces: true, ..Options::default() })
}

fn trace(report: &Report) -> String {
    let steps = report.found.iter().flat_map(|found| &found.trace);
    steps.map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

#[test]
fn i1_i2_i5_i6_i14_hold_in_every_state_of_the_small_scopes() {
    let mut met = [0; 6];
    for scope in SMALL {
        let report = search(&scope.config, Options { traces: true, drive: 16, ..Options::default() });
        let what = report.found.as_ref().map(|found| found.what);
        assert_eq!(what, None, "{}: {}", scope.name, trace(&report));
        assert!(report.complete && report.ends > 0 && report.driven > 0, "{}", scope.name);
        println!("{}: {} states, {:.1} s", scope.name, report.states, report.seconds);
        met.iter_mut().zip(report.met).for_each(|(all, here)| *all += here);
    }
    // Nothing broken must not mean that nothing happened.
    assert!(met.iter().all(|count| *count > 0), "{met:?}");
}

#[test]
fn every_mutant_is_caught_or_held_by_a_rule_of_the_engine() {
    let mut held = 0;
    for trial in mutants() {
        let report = run(&trial.config);
        let (mutant, what) = (trial.mutant, report.found.as_ref().map(|found| found.what));
        println!("{mutant:?}: {} states, {:.1} s: {what:?}", report.states, report.seconds);
        if trial.expect == Expect::Caught {
            assert!(what.is_some(), "{mutant:?} is not caught in {} states", report.states);
            continue;
        }
        assert_eq!(what, None, "{mutant:?}: {}", trace(&report));
        assert!(report.complete, "{mutant:?}");
        if let Expect::HeldByApply { ask, end } = trial.expect {
            assert!(report.judged.contains_key(&(ask, end)), "{mutant:?}: {:?}", report.judged);
            let sound = run(&Config { mutant: Mutant::Nothing, ..trial.config });
            assert_ne!(report.states, sound.states, "{mutant:?} does nothing else than a sound run");
            held += 1;
        }
    }
    assert_eq!(held, 3);
}

#[test]
fn the_reductions_lose_no_outcome() {
    let two = Config { numbers: [1, 1, 0], incarnations: 2, ..TINY };
    let scopes = [
        Config { producer: true, ..two },
        Config { incarnations: 2, release: 1, numbers: [1, 1, 0], objects: [1, 1, 0], offsets: 1, ..PAIR },
        Config { leave: 2, ..two },
        Config { tidy: true, objects: [1, 2, 0], ..two },
        Config { probe: true, ..two },
        Config { coordinator: true, ..two },
    ];
    for config in scopes {
        let outcomes = |full| {
            let report = search(&Config { full, ..config }, Options { outcomes: true, ..Options::default() });
            assert!(report.complete && report.found.is_none(), "{}", trace(&report));
            (report.outcomes, report.states)
        };
        let ((reduced, fewer), (plain, more)) = (outcomes(false), outcomes(true));
        println!("{fewer} of {more} states, {} outcomes", plain.len());
        assert!(fewer < more && plain.len() > 4, "{fewer} {more}");
        assert_eq!(reduced, plain, "{config:?}");
    }
}

/// They are sentences that one would like to lean on.
#[test]
fn four_claims_that_sound_true_are_judged() {
    // Once an adopted object is rewritten it goes; rewritten at once, it goes soonest.
    let two = Config { full: true, numbers: [2, 1, 1], offsets: 4, rewrite: true, adopt: false, ..TINY };
    let one = Config { numbers: [1, 1, 0], ..two };
    let judge = |claims, config| {
        let report = run(&Config { claims, ..config });
        println!("{claims}: {} states, {:.1} s", report.states, report.seconds);
        report.found.is_none()
    };
    assert!(!judge(CLAIM_PUT_PROVES, two));
    assert!(!judge(CLAIM_ONE_SEAL, two));
    assert!(!judge(CLAIM_SILENT, one));
    assert!(judge(CLAIM_FIRST_PUT, one));
}

#[test]
fn a_state_is_its_bytes() {
    let mut bytes = [0; SIZE];
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = (at % 251) as u8;
    }
    assert_eq!(State::from_bytes(&bytes).bytes(), bytes);
    assert_eq!(BASE.claims, 0);
}
