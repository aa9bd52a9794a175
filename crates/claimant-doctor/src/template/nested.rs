//! A template's text, and the stacks that it includes.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use claimant_template::{Demands, LOOP, Macro, Node};

use super::imports::{self, Owners};
use super::options::{Error, Options};
use super::parameters::is_elsewhere;
use super::part::Part;
use super::scope::{ACCOUNT, HOLE, Outputs, Scope, Within};
use crate::fact::Fact;
use crate::model::WITHIN;

/// Stacks within stacks at most, and stacks in all.
const DEPTH_MAX: usize = 5;
const STACKS_MAX: usize = 200;

/// Types that include a template, with the property that names it.
const INCLUDES: [(&str, &str); 2] =
    [("AWS::CloudFormation::Stack", "TemplateURL"), ("AWS::Serverless::Application", "Location")];

#[derive(Default)]
pub(super) struct Read {
    /// The template, and those that it includes.
    pub(super) scopes: Vec<Scope>,
    pub(super) not_looked_at: Vec<String>,
}

/// A template that is given; read once, as a pipe can be.
pub(super) struct Given<'p> {
    pub(super) path: &'p Path,
    root: Node,
}

impl<'p> Given<'p> {
    pub(super) fn read(path: &'p Path) -> Result<Self, Error> {
        Ok(Self { path, root: claimant_template::read(path).map_err(Error)? })
    }
}

/// Reads what templates include, each with its prefix.
pub(super) fn scopes(given: &[(&Given<'_>, &str)], owners: &Owners, options: &Options) -> Vec<Read> {
    let outputs = Outputs::default();
    let all = || given.iter().map(|(given, prefix)| included(given, prefix, options, &outputs)).collect::<Vec<_>>();
    let mut read = all();
    // What a stack gives out decides what others are given, and include: however they stand, one link more is known each time.
    for _ in 0..DEPTH_MAX + given.len() {
        let scopes = read.iter().flat_map(|read| read.scopes.iter().rev());
        if scopes.filter(|scope| give_out(scope, owners)).count() == 0 {
            break;
        }
        read = all();
    }
    read
}

/// Reads what a template includes, with what stacks are known to give out.
fn included(given: &Given<'_>, prefix: &str, options: &Options, outputs: &Outputs) -> Read {
    let parameters =
        options.parameters.iter().map(|(name, value)| (name.clone(), Fact::Known(Node::text(1, &**value))));
    let pseudo = [("Region", &options.region), (ACCOUNT, &options.account)];
    let pseudo = pseudo.into_iter().filter_map(|(name, value)| Some((name, value.clone()?))).collect();
    let within = Within { prefix: prefix.to_owned(), certain: true, depth: 0 };
    let values = (parameters.collect(), pseudo, Outputs::clone(outputs));
    let first = scope(given.path, given.root.clone(), within, values);
    let mut read = Read { scopes: vec![first], not_looked_at: Vec::new() };
    let mut next = 0;
    while next < read.scopes.len() {
        include(&mut read, next);
        next += 1;
    }
    read
}

/// Evaluates what a stack gives out to the one that it is in and to those that import from it, as far as that can be known; returns whether
/// any of it is new.
fn give_out(scope: &Scope, owners: &Owners) -> bool {
    let Some(stack) = scope.within.prefix.strip_suffix(WITHIN) else { return false };
    let mut is_new = false;
    for (name, output) in scope.root.get("Outputs").map_or(&[][..], Node::entries) {
        let value = output.get("Value").map(|value| scope.evaluate(value, 0));
        let text = value.as_ref().and_then(|value| value.known()?.as_text()).filter(|text| !text.contains(HOLE));
        if let Some(text) = text {
            let is_owned = |key: &String| owners.get(key).is_some_and(Option::is_some);
            let exported = scope.exported(output, stack).map(|name| imports::export(&name));
            let given = Some(imports::given(stack, name)).filter(is_owned);
            let keys = exported.filter(is_owned).into_iter().chain(given).chain([imports::output(stack, name)]);
            for key in keys {
                is_new |= scope.outputs.borrow_mut().insert(key, text.to_owned()).as_deref() != Some(text);
            }
        }
    }
    is_new
}

/// Refuses values for parameters that none of these templates has, and what `CloudFormation` refuses as a whole: values of parameters,
/// given or defaults, and resources of AWS SAM without its macro. With them there is no stack to look at.
pub(super) fn known(read: &[Read], options: &Options) -> Result<(), Error> {
    let templates: Vec<_> = read.iter().filter_map(|read| read.scopes.first()).collect();
    let has = |scope: &&Scope, name: &str| scope.root.get("Parameters").is_some_and(|all| all.get(name).is_some());
    for name in options.parameters.keys() {
        if !templates.iter().any(|scope| has(scope, name)) {
            let files = templates.iter().map(|scope| &*scope.file).collect::<Vec<_>>().join(", ");
            let verb = if templates.len() == 1 { "has" } else { "have" };
            return Err(Error(format!("{files} {verb} no parameter {name}: remove it or correct its name")));
        }
    }
    // A stack that may not be there refuses nothing.
    let mut certain = read.iter().flat_map(|read| &read.scopes).filter(|scope| scope.within.certain);
    certain.try_for_each(|scope| {
        refused(scope).map_or(Ok(()), |why| Err(Error(why)))?;
        allowed(scope)
    })
}

/// A parameter, the value that it has here, and whose that is.
struct Valued<'s> {
    name: &'s str,
    parameter: &'s Node,
    value: &'s str,
    which: &'static str,
}

/// The parameters whose values are known.
fn valued(scope: &Scope) -> impl Iterator<Item = Valued<'_>> {
    let parameters = scope.root.get("Parameters").map_or(&[][..], Node::entries).iter();
    // Of what is in Systems Manager, the value is a name; and what a text resolves to is not known.
    let parameters = parameters.filter(|(_, parameter)| !is_elsewhere(parameter));
    parameters.filter_map(|(name, parameter)| {
        let (which, value) = match scope.given(name) {
            Some(given) => ("the value given", given.known()?),
            None => ("its default", parameter.get("Default")?),
        };
        let value = value.as_text().filter(|value| !value.contains("{{resolve:") && !value.contains("${"))?;
        Some(Valued { name, parameter, value, which })
    })
}

/// Refuses values that the template forbids, without quoting them: they may be secrets.
fn allowed(scope: &Scope) -> Result<(), Error> {
    for Valued { name, parameter, value, which } in valued(scope) {
        if let Some(why) = Demands::of(parameter).broken(value) {
            let (file, line) = (&scope.file, parameter.line);
            let fix = match scope.within.prefix.strip_suffix(WITHIN) {
                Some(stack) => format!("under Parameters of {stack}"),
                None => format!("with --parameter {name}=…"),
            };
            return Err(Error(format!("{file}:{line}: parameter {name}: {which} {why}: give another one {fix}")));
        }
    }
    Ok(())
}

/// The parameters of these templates that were asked for and have no value, each as `--parameter` takes it, with the values that it may have
/// behind it.
pub(super) fn unvalued(read: &Read) -> BTreeSet<String> {
    let option = |scope: &Scope, name: &String| {
        let definition = scope.root.get("Parameters").and_then(|all| all.get(name)).map(Demands::of);
        let values = definition.map(|definition| definition.values().join(" or ")).filter(|values| !values.is_empty());
        format!("--parameter {name}=…{}", values.map(|values| format!(" ({values})")).unwrap_or_default())
    };
    let given = read.scopes.iter().filter(|scope| scope.within.depth == 0);
    given.flat_map(|scope| scope.unvalued.borrow().iter().map(|name| option(scope, name)).collect::<Vec<_>>()).collect()
}

/// The values that are compared with no pattern.
pub(super) fn uncompared(scope: &Scope) -> impl Iterator<Item = String> {
    valued(scope).filter(|valued| Demands::of(valued.parameter).unread_pattern().is_some()).map(|valued| {
        let (file, line, name) = (&scope.file, valued.parameter.line, valued.name);
        format!("{file}:{line}: whether {name} matches its AllowedPattern, which only AWS can read")
    })
}

/// Reads what the template at this index includes.
fn include(read: &mut Read, index: usize) {
    let including = &read.scopes[index];
    let mut found: Vec<_> = macros(including).into_iter().chain(including.loops_left.clone()).map(Err).collect();
    for (id, node) in including.root.get("Resources").map_or(&[][..], Node::entries) {
        if id.starts_with(LOOP) {
            continue;
        }
        if id.starts_with("Fn::") {
            found.push(Err(format!("{}:{}: {id}, which is not written out here", including.file, node.line)));
            continue;
        }
        let kind = node.get("Type").and_then(Node::as_text);
        let Some((_, property)) = INCLUDES.iter().find(|(include, _)| kind == Some(*include)) else { continue };
        let holds =
            node.get("Condition").and_then(Node::as_text).map_or(Some(true), |name| including.condition(name, 0));
        if holds != Some(false) {
            let within = Within {
                prefix: format!("{}{id}{WITHIN}", including.within.prefix),
                certain: including.within.certain && holds.is_some(),
                depth: including.within.depth + 1,
            };
            let read = nested(including, within, node, property);
            found.push(read.map_err(|why| format!("{}:{}: {id}: {why}", including.file, node.line)));
        }
    }
    for one in found {
        match one {
            Ok(_) if read.scopes.len() == STACKS_MAX => {
                read.not_looked_at.push(format!("more than {STACKS_MAX} nested stacks"));
                return;
            }
            Ok(scope) => read.scopes.push(scope),
            Err(why) => read.not_looked_at.push(why),
        }
    }
}

/// What of a whole template's macros are not AWS's own, which leave alone what is looked at here. Those change whatever they like.
fn macros(scope: &Scope) -> Vec<String> {
    let others = claimant_template::macros(&scope.root).into_iter().filter(|one| !one.is_of_aws());
    let line = |one: Macro<'_>| {
        format!("{}:{}: what {} makes of the template", scope.file, one.line, one.name.unwrap_or("a macro"))
    };
    others.map(line).collect()
}

/// Resources of AWS SAM without the macro for them. In a stack that may not be there, the checks read them as if the macro was.
pub(super) fn refused(scope: &Scope) -> Option<String> {
    let (id, kind, node) = claimant_template::refused(&scope.root)?;
    Some(format!(
        "{}:{}: {id}: CloudFormation refuses {kind} in a template without `Transform: {}`: add it",
        scope.file,
        node.line,
        claimant_template::SAM
    ))
}

/// Where `cdk synth` has written the template that this property names: what the property itself names is uploaded at deployment.
fn synthesized(stack: &Part<'_>, property: &str) -> Option<String> {
    let metadata = |key: &str| stack.under(&["Metadata", key]).literal().known().cloned().flatten();
    metadata("aws:asset:path").filter(|_| metadata("aws:asset:property").is_some_and(|of| of == property))
}

/// Reads an included template.
fn nested(including: &Scope, within: Within, node: &Node, property: &str) -> Result<Scope, String> {
    let resource = Part::new(including, node);
    let properties = resource.at("Properties");
    let named = || properties.at(property).literal().known().cloned().flatten();
    let Some(location) = synthesized(&resource, property).or_else(named) else {
        return Err("its template is not known".to_owned());
    };
    if location.contains("://") {
        return Err(format!("its template is at {location}"));
    }
    if including.within.depth == DEPTH_MAX {
        return Err(format!("more than {DEPTH_MAX} stacks within each other"));
    }
    let parameters = match properties.at("Parameters").entries() {
        Fact::Known(entries) => entries.into_iter().map(|(name, part)| (name.to_string(), part.node())).collect(),
        Fact::Unknown => return Err("its parameters are not known".to_owned()),
    };
    let directory = Path::new(&*including.file).parent().unwrap_or(Path::new(""));
    let path = directory.join(location);
    let root = claimant_template::read(&path)?;
    Ok(scope(&path, root, within, (parameters, including.pseudo.clone(), Outputs::clone(&including.outputs))))
}

/// The values of parameters and pseudo parameters, and what stacks give out.
type Values = (BTreeMap<String, Fact<Node>>, BTreeMap<&'static str, String>, Outputs);

/// A template with what it is given.
fn scope(path: &Path, root: Node, within: Within, (parameters, pseudo, outputs): Values) -> Scope {
    let mut scope = Scope {
        file: path.display().to_string().into(),
        within,
        root,
        loops_left: Vec::new(),
        parameters,
        pseudo,
        outputs,
        steps: Cell::new(0),
        unvalued: RefCell::default(),
    };
    let items_of = |list: &Node| scope.texts(list).ok_or_else(|| "its list is not known here".to_owned());
    let (root, left) = claimant_template::written_out(&scope.root, items_of);
    scope.loops_left = left.iter().map(|one| format!("{}:{}: {}", scope.file, one.line, one.what)).collect();
    scope.root = root;
    scope
}
