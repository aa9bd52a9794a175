//! Where the program of a function is: where cargo, cargo-lambda, SAM and CDK put it.

use std::collections::{BTreeMap, BTreeSet};
use std::env::consts;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use super::config::Binaries;
use crate::lambda::Places;
use crate::stack::{CodeSpec, FunctionSpec};

/// The name of a program in the directory that is deployed.
pub(super) const BOOTSTRAP: &str = "bootstrap";

/// The directories under cargo's target directory that hold programs by their name.
const PROFILES: [&str; 2] = ["debug", "release"];

/// What cargo says of a directory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Cargo {
    target: PathBuf,
    /// The binaries of the package in that directory, or of all packages where the directory is a workspace, each with its package.
    binaries: Vec<(String, String)>,
    default: Option<String>,
}

/// Looks for the programs of one template's functions, by absolute paths: the working directory can be removed, and made again, while they run.
pub(super) struct Programs<'a> {
    /// The template's directory.
    template: PathBuf,
    binaries: &'a Binaries,
    cargo: BTreeMap<PathBuf, Option<Cargo>>,
}

impl<'a> Programs<'a> {
    pub(super) fn new(template: &'a Path, binaries: &'a Binaries) -> Self {
        let mut template = absolute(template);
        template.pop();
        Self { template, binaries, cargo: BTreeMap::new() }
    }

    /// The places for this function's program. Sets the name of its binary where cargo knows it and the template does not.
    pub(super) fn places(&mut self, spec: &mut FunctionSpec) -> Places {
        let code = spec.code.clone();
        let directory = code.directory.as_ref().map(|directory| self.template.join(directory));
        let given = self.binaries.directory.as_deref().map(absolute);
        let named = given.as_ref().is_some_and(|directory| directory.join(&spec.binary).is_file());
        let cargo = match &directory {
            // Asking cargo takes a moment, and there is nothing to ask.
            _ if code.binary_is_named && (named || !self.binaries.search) => None,
            Some(directory) if directory.join("Cargo.toml").is_file() => self.ask_cargo(directory),
            _ => None,
        };
        if let Some(binary) = cargo.as_ref().and_then(|cargo| cargo.binary_of(spec, &code)) {
            spec.binary = binary;
        }
        let mut first = Vec::new();
        if let Some(given) = given {
            first.push(given.join(&spec.binary));
            first.extend([&spec.binary, &spec.logical_id].map(|name| given.join(name).join(BOOTSTRAP)));
        }
        let mut others = Vec::new();
        if self.binaries.search {
            others.extend(directory.map(|directory| directory.join(BOOTSTRAP)));
            others.push(self.template.join(".aws-sam/build").join(&spec.logical_id).join(BOOTSTRAP));
            if let Some(Cargo { target, .. }) = cargo {
                let profiles = |target: &Path| PROFILES.map(|profile| target.join(profile).join(&spec.binary));
                others.extend(profiles(&target));
                others.extend(named_targets(&target).iter().flat_map(|target| profiles(target)));
                others.push(target.join("lambda").join(&spec.binary).join(BOOTSTRAP));
            }
        }
        others.retain(|place| !first.contains(place));
        Places { first, others }
    }

    /// Returns why no program can be built of the code that the template names, if so.
    pub(super) fn fault(&self, spec: &FunctionSpec) -> Option<String> {
        let code = spec.code.directory.as_ref().filter(|_| self.binaries.search)?;
        let directory = self.template.join(code);
        if !directory.exists() && !spec.code.is_asset {
            return Some(format!("its code {code} is not there: correct its path, or build it there"));
        }
        let is_of_cargo = spec.code.cargo || spec.code.binary_is_named;
        let cargo = self.cargo.get(&directory)?.as_ref().filter(|_| is_of_cargo)?;
        if cargo.binaries.iter().any(|(binary, _)| *binary == spec.binary) {
            return None;
        }
        let names: Vec<_> = cargo.binaries.iter().map(|(binary, _)| binary.as_str()).collect();
        let names = if names.is_empty() { "none at all".to_owned() } else { names.join(", ") };
        let fix = "name the function's as `Binary` of its `BuildProperties`";
        Some(format!("cargo knows no binary {} in {code}, but {names}: {fix}", spec.binary))
    }

    /// Returns the package that has the function's binary: of its name, where cargo was not asked.
    pub(super) fn package<'s>(&'s self, spec: &'s FunctionSpec) -> &'s str {
        let known = || self.cargo.get(&self.template.join(spec.code.directory.as_ref()?))?.as_ref();
        let binaries = known().map_or(&[][..], |cargo| &cargo.binaries);
        binaries.iter().find(|(binary, _)| *binary == spec.binary).map_or(&spec.binary, |(_, package)| package)
    }

    fn ask_cargo(&mut self, directory: &Path) -> Option<Cargo> {
        let ask = || {
            let manifest = directory.join("Cargo.toml").canonicalize().ok()?;
            let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
            command
                .args(["metadata", "--no-deps", "--offline", "--format-version", "1", "--manifest-path"])
                .arg(&manifest)
                // There are its configuration and its toolchain.
                .current_dir(directory);
            for name in ["CARGO_TARGET_DIR", "CARGO_BUILD_TARGET_DIR"] {
                if let Some(given) = std::env::var_os(name) {
                    command.env(name, absolute(Path::new(&given)));
                }
            }
            let output = command.output().ok().filter(|output| output.status.success())?;
            Cargo::read(&serde_json::from_slice(&output.stdout).ok()?, &manifest)
        };
        self.cargo.entry(directory.to_owned()).or_insert_with(ask).clone()
    }
}

/// Returns the path as it is where it cannot be made absolute: then it leads nowhere.
pub(super) fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

impl Cargo {
    fn read(metadata: &Value, manifest: &Path) -> Option<Self> {
        let packages = metadata.get("packages")?.as_array()?;
        let is_own =
            |package: &&Value| package["manifest_path"].as_str().is_some_and(|path| Path::new(path) == manifest);
        let own: Vec<_> = packages.iter().filter(is_own).collect();
        let default = own.first().and_then(|package| package["default_run"].as_str()).map(str::to_owned);
        let packages = if own.is_empty() { packages.iter().collect() } else { own };
        let is_binary = |target: &&Value| target["kind"].as_array().is_some_and(|kind| kind.contains(&"bin".into()));
        let binaries = packages.iter().flat_map(|package| {
            let targets = package["targets"].as_array().into_iter().flatten().filter(is_binary);
            let owned = |value: &Value| value.as_str().map(str::to_owned);
            targets.filter_map(move |target| Some((owned(&target["name"])?, owned(&package["name"])?)))
        });
        Some(Self { target: metadata["target_directory"].as_str()?.into(), binaries: binaries.collect(), default })
    }

    /// The binary that is the function's: the named one, the only one, or that which is called like the function.
    fn binary_of(&self, spec: &FunctionSpec, code: &CodeSpec) -> Option<String> {
        if code.binary_is_named {
            return None;
        }
        if let [(only, _)] = self.binaries.as_slice() {
            return Some(only.clone());
        }
        let called = [&spec.name, &spec.logical_id].map(|name| plain(name));
        let alike = self.binaries.iter().map(|(binary, _)| binary).find(|binary| {
            let binary = plain(binary);
            called.iter().any(|name| *name == binary || *name == format!("{binary}function"))
        });
        alike.or(self.default.as_ref()).cloned()
    }
}

/// Where cargo builds for a target that it is told by name, as by `build.target`: for this machine, built or not, and for those that are there.
fn named_targets(target: &Path) -> BTreeSet<PathBuf> {
    let there = std::fs::read_dir(target).into_iter().flatten().flatten();
    let there = there.filter(|entry| entry.file_name().to_str().is_some_and(is_triple)).map(|entry| entry.path());
    own_targets().iter().map(|name| target.join(name)).chain(there).collect()
}

/// Whether a name is one of a target, such as `aarch64-unknown-linux-gnu`: tools have directories of their own beside those.
fn is_triple(name: &str) -> bool {
    const ARCHITECTURES: [&str; 7] = ["aarch64", "arm", "i686", "powerpc64", "riscv64", "s390x", "x86_64"];
    name.matches('-').count() >= 2 && ARCHITECTURES.iter().any(|architecture| name.starts_with(architecture))
}

/// What cargo may be told by name that this machine is.
pub(super) fn own_targets() -> Vec<String> {
    let systems: &[_] =
        if cfg!(target_os = "macos") { &["apple-darwin"] } else { &["unknown-linux-gnu", "unknown-linux-musl"] };
    systems.iter().map(|system| format!("{}-{system}", consts::ARCH)).collect()
}

/// A name without what differs between a crate's and a resource's.
fn plain(name: &str) -> String {
    name.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;

    use super::*;

    fn function(logical_id: &str, name: &str, binary: Option<&str>) -> FunctionSpec {
        FunctionSpec {
            logical_id: logical_id.to_owned(),
            name: name.to_owned(),
            binary: binary.unwrap_or(logical_id).to_owned(),
            code: CodeSpec {
                directory: Some("functions/orders".to_owned()),
                cargo: true,
                binary_is_named: binary.is_some(),
                is_asset: false,
            },
            timeout: Duration::from_secs(3),
            memory_mb: 128,
            environment: BTreeMap::new(),
            secrets: BTreeSet::new(),
            log_level: None,
            mappings: Vec::new(),
        }
    }

    #[test]
    fn a_functions_binary_is_the_only_one_or_the_one_called_like_it() {
        let package = |manifest: &str, default: Option<&str>, binaries: &[&str]| {
            let targets: Vec<_> = binaries.iter().map(|name| json!({"name": name, "kind": ["bin"]})).collect();
            let targets = [vec![json!({"name": "lib", "kind": ["lib"]})], targets].concat();
            json!({"name": "of-several", "manifest_path": manifest, "default_run": default, "targets": targets})
        };
        let two = ["order-confirmation", "refunds"];
        type Row<'a> = (&'a str, Option<&'a str>, &'a [&'a str], Option<&'a str>);
        let table: [Row<'_>; 6] = [
            ("Anything", None, &["orders"], Some("orders")),
            ("OrderConfirmation", None, &two, Some("order-confirmation")),
            ("OrderConfirmationFunction", None, &two, Some("order-confirmation")),
            ("Other", Some("refunds"), &two, Some("refunds")),
            ("Other", None, &two, None),
            ("Other", None, &[], None),
        ];
        for (id, default, binaries, expected) in table {
            let packages = [package("/w/a/Cargo.toml", default, binaries), package("/w/b/Cargo.toml", None, &["else"])];
            let metadata = json!({"target_directory": "/w/target", "packages": packages});
            let cargo = Cargo::read(&metadata, Path::new("/w/a/Cargo.toml")).expect("as cargo has it");
            let spec = function(id, id, None);
            assert_eq!(cargo.binary_of(&spec, &spec.code).as_deref(), expected, "{id} {binaries:?}");
            let named = function(id, id, Some("mine"));
            assert_eq!(cargo.binary_of(&named, &named.code), None, "the template has said it");
        }
    }

    #[test]
    fn programs_are_looked_for_under_targets_and_not_under_what_tools_have_beside_them() {
        let target = tempfile::tempdir().expect("a directory");
        for name in ["s390x-unknown-linux-gnu", "llvm-cov-target", "x86_64", "my-own-tool"] {
            std::fs::create_dir_all(target.path().join(name).join("debug")).expect("ours");
        }
        let own = own_targets().into_iter();
        let expected: BTreeSet<_> = own.chain(["s390x-unknown-linux-gnu".to_owned()]).collect();
        assert_eq!(named_targets(target.path()), expected.iter().map(|name| target.path().join(name)).collect());
    }

    /// Cargo itself is asked; a function whose directory has no package has SAM's and its own directory alone.
    #[test]
    fn programs_are_looked_for_where_the_tools_put_them() {
        let project = tempfile::tempdir().expect("a directory");
        let root = project.path().canonicalize().expect("it is there");
        let package = root.join("functions/orders");
        std::fs::create_dir_all(package.join("src")).expect("ours");
        std::fs::write(
            package.join("Cargo.toml"),
            "[package]\nname = \"order-taker\"\nedition = \"2024\"\n[workspace]\n",
        )
        .expect("ours");
        std::fs::write(package.join("src/main.rs"), "fn main() {}\n").expect("ours");
        let (template, binaries) = (root.join("template.yaml"), root.join("bin"));

        let mut orders = function("Orders", "shop-orders", None);
        let all = Binaries { search: true, ..Binaries::in_directory(&binaries) };
        let places = Programs::new(&template, &all).places(&mut orders.clone());
        let elsewhere = Binaries { directory: None, ..all.clone() };
        let searched = Programs::new(&template, &elsewhere).places(&mut orders);
        assert_eq!((searched.first.len(), &searched.others), (0, &places.others));
        assert_eq!(orders.binary, "order-taker");
        let first = ["bin/order-taker", "bin/order-taker/bootstrap", "bin/Orders/bootstrap"];
        assert_eq!(places.first, first.map(|place| root.join(place)));
        let cargo = places.others.iter().any(|place| place.ends_with("debug/order-taker"));
        let lambda = places.others.iter().any(|place| place.ends_with("lambda/order-taker/bootstrap"));
        assert!(cargo && lambda, "{places:?}");
        for target in own_targets() {
            let of_target = Path::new(&target).join("release/order-taker");
            assert!(places.others.iter().any(|place| place.ends_with(&of_target)), "{target}: {places:?}");
        }
        let sam = [root.join("functions/orders/bootstrap"), root.join(".aws-sam/build/Orders/bootstrap")];
        assert_eq!(places.others[..2], sam);

        let relative = Binaries { directory: Some("bin".into()), ..all.clone() };
        let places =
            Programs::new(Path::new("template.yaml"), &relative).places(&mut function("Orders", "orders", None));
        let here = std::env::current_dir().expect("it is there");
        assert_eq!(places.first[0], here.join("bin/Orders"));
        assert!(places.all().all(|place| place.starts_with(&here)), "{places:?}");

        let mut only = function("Orders", "shop-orders", Some("taker"));
        let places = Programs::new(&template, &Binaries::in_directory(&binaries)).places(&mut only);
        assert_eq!((places.first[0].clone(), places.others.len()), (root.join("bin/taker"), 0));
    }
}
