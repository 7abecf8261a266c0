//! `gradus grad`, `jacobian`, `hessian`: derivatives at a point.

use crate::arguments::{Application, Given};
use crate::commands::call::json_unless_text;
use crate::options::Point;
use crate::output::{Done, Failure, Output};
use gradus::numeric::{compare, Comparison};
use gradus::{Backend, Error, Options, Value};

/// Finite differences are taken in at most so many of the reals, spread evenly.
const MOST_COMPARED: usize = 1000;

pub fn grad(point: &Point, verify: Option<f64>, certify: bool, options: Options, output: &Output) -> Done {
    let options = match options.backend {
        // The theorems are about the evaluator's derivatives, and so is the certificate of what is shown.
        Backend::Auto if certify => Options { backend: Backend::Reference, ..options },
        _ => options,
    };
    let application = read(point, options, output)?;
    let derived = application.function.value_and_grad(point.wrt)?;
    let both = derived.apply(&application.arguments())?;
    let Value::Tuple(parts) = &both else { return Err(Failure::Input("value_and_grad gives a pair".into())) };
    let [value, gradient] = &**parts else { return Err(Failure::Input("value_and_grad gives a pair".into())) };
    let mut fields = vec![("value", value.clone()), ("gradient", gradient.clone())];
    let comparison = match verify {
        Some(_) => Some(verified(&application, point.wrt, gradient)?),
        None => None,
    };
    if let Some(comparison) = &comparison {
        let difference = Value::record([
            ("largest_relative_difference", comparison.difference.into()),
            ("at", comparison.place.as_str().into()),
            ("compared", Value::Int(comparison.compared as i64)),
        ]);
        fields.push(("verify", difference));
    }
    let certificate = match certify {
        true => Some(application.function.certify(&application.arguments())?),
        false => None,
    };
    if let Some(certificate) = &certificate {
        let texts = |texts: &[String]| Value::array(texts.iter().map(|text| text.as_str().into()).collect());
        let mut facts = vec![
            ("covered", Value::Bool(certificate.covered())),
            ("theorem", certificate.theorem.unwrap_or("none").into()),
            ("mode", certificate.mode.map_or("compiled", gradus::Mode::key).into()),
        ];
        facts.extend(certificate.steps.map(|steps| ("steps", Value::Int(steps as i64))));
        facts.push(("kinks", Value::Int(certificate.kinks as i64)));
        facts.push(("kinks_at", texts(&certificate.kinks_at)));
        facts.push(("outside", texts(&certificate.outside)));
        fields.push(("certificate", Value::record(facts)));
    }
    json_unless_text(&Value::record(fields), output)?;
    super::say_kinks(&derived.kinks(), output)?;
    if let Some(uncovered) = certificate.filter(|certificate| !certificate.covered()) {
        return Err(Failure::Input(format!("the gradient at this point is {}", uncovered.summary())));
    }
    match (comparison, verify) {
        (Some(found), Some(tolerance)) if found.difference > tolerance => Err(Failure::Input(format!(
            "the gradient disagrees with finite differences: at {} it is {:?}, finite differences give {:?} \
             (relative difference {:.1e}, tolerance {tolerance:e})",
            found.place, found.gradient, found.finite_difference, found.difference
        ))),
        _ => Ok(()),
    }
}

fn read(point: &Point, options: Options, output: &Output) -> Result<Application, Failure> {
    let program = super::load(&point.file, options, output)?;
    Application::read(&program, &point.function, &point.at, "--at")
}

fn verified(application: &Application, wrt: usize, gradient: &Value) -> Result<Comparison, Failure> {
    let Some(Given::Value(at)) = application.given.get(wrt) else {
        return Err(Failure::Usage("--verify needs a point that is data".into()));
    };
    let arguments = application.arguments();
    let comparison = compare(at, gradient, MOST_COMPARED, |moved: &Value| -> Result<f64, Error> {
        let beside = Given::Value(moved.clone());
        let mut here = arguments.clone();
        if let Some(slot) = here.get_mut(wrt) {
            *slot = beside.argument();
        }
        Ok(application.function.apply(&here)?.as_real().unwrap_or(f64::NAN))
    })?;
    Ok(comparison)
}

pub fn jacobian(point: &Point, options: Options, output: &Output) -> Done {
    let application = read(point, options, output)?;
    let derived = application.function.jacobian(point.wrt)?;
    json_unless_text(&derived.apply(&application.arguments())?, output)?;
    super::say_kinks(&derived.kinks(), output)
}

pub fn hessian(point: &Point, options: Options, output: &Output) -> Done {
    let application = read(point, options, output)?;
    let derived = application.function.hessian(point.wrt)?;
    json_unless_text(&derived.apply(&application.arguments())?, output)?;
    super::say_kinks(&derived.kinks(), output)
}
