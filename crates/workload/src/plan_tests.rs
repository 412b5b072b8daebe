//! A plan for a target, by a made-up workload whose targets guarantee something.

use std::path::Path;

use super::*;
use crate::{About, Kind, Parameter, Value};

const ROWS: [Parameter; 2] = [
    Parameter::new("size_bytes", Kind::Whole { least: 1, most: 99 }, ""),
    Parameter {
        only_running: true,
        ..Parameter::new("copies", Kind::Whole { least: 0, most: 9 }, "")
    },
];

/// A workload whose load needs to know how many copies a target keeps.
#[derive(Debug)]
struct Toy;

impl Workload for Toy {
    fn about(&self) -> &'static About {
        &About {
            name: "toy",
            line: "",
            floor: None,
            contract: None,
        }
    }

    fn parameters(&self) -> &'static [Parameter] {
        &ROWS
    }

    fn plan(&self, values: Values) -> Result<Arc<dyn Plan>, Refusal> {
        Ok(Arc::new(ToyPlan(values)))
    }
}

#[derive(Debug)]
struct ToyPlan(Values);

impl Plan for ToyPlan {
    fn workload(&self) -> &'static dyn Workload {
        &Toy
    }

    fn values(&self) -> &Values {
        &self.0
    }

    fn unit(&self) -> LoadUnit {
        LoadUnit::SESSIONS
    }

    fn slo(&self) -> Slo {
        Slo::from_gates("toy", &[])
    }

    fn must_fit(&self, manifest: &Manifest) -> Result<Values, Refusal> {
        match manifest.numbers("copies").as_deref() {
            Some([copies]) => Ok(Values::default().with("copies", Value::Whole(*copies))),
            Some(_) => Err(Refusal::new("give one number of copies")),
            None => Ok(Values::default()),
        }
    }

    fn demand(&self, load: u32, _profile: &Profile) -> Demand {
        Demand::of_sessions(load, 1.0)
    }

    fn told(&self) -> Told {
        let copies = self.0.whole("copies").unwrap_or(0);
        Told {
            path: "/".into(),
            health_path: "/health",
            port: None,
            variables: vec![("COPIES".to_owned(), copies.to_string())],
            data: None,
        }
    }

    fn machines(&self, _job: &Job, _profile: &Profile) -> Result<Box<dyn Drive>, Refusal> {
        Err(Refusal::new("a toy drives nothing"))
    }

    fn let_in(&self, to: Endpoint) -> Result<Endpoint, Refusal> {
        Ok(to)
    }
}

fn manifest(own_keys: &str) -> Manifest {
    let text = format!(
        "name = \"a\"\nworkload = \"toy\"\ntier = \"test\"\nlanguage = \"x\"\ndescription = \"x\"\n{own_keys}\n[run]\ncommand = [\"sh\"]\n"
    );
    Manifest::parse(&text, Path::new("/t/toy/a/target.toml"), |_| None).expect("valid")
}

#[test]
fn a_plan_knows_what_the_manifest_settles() {
    let toy: &dyn Workload = &Toy;
    let given = Values::default().with("size_bytes", Value::Whole(5));
    let plan = toy.plan_for(given.clone(), &manifest("copies = [3]"));
    let plan = plan.expect("a plan");
    let settled = given.clone().with("copies", Value::Whole(3));
    assert_eq!(*plan.values(), settled);
    assert_eq!(
        plan.told().variables,
        [("COPIES".to_owned(), "3".to_owned())]
    );
    // A client process makes it again from these values alone.
    let again = toy.plan(plan.values().clone()).expect("a plan");
    assert_eq!(again.values(), plan.values());
    let plain = toy.plan_for(given.clone(), &manifest("")).expect("a plan");
    assert_eq!(*plain.values(), given);
}

#[test]
fn a_target_that_does_not_fit_is_refused() {
    let toy: &dyn Workload = &Toy;
    let refused = toy.plan_for(Values::default(), &manifest("copies = [1, 2]"));
    let refused = refused.expect_err("two numbers");
    assert_eq!(refused.to_string(), "give one number of copies");
}
