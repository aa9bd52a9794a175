//! What is made of a whole template before it is a stack: its `Transform`.

use crate::yaml::{Kind, Node};

/// The macro that makes resources of `CloudFormation` of those of AWS SAM.
pub const SAM: &str = "AWS::Serverless-2016-10-31";

/// How the types of AWS SAM begin.
const OF_SAM: &str = "AWS::Serverless::";

/// The macro that puts in other texts, and so is not known for what it makes.
const INCLUDE: &str = "AWS::Include";

/// A macro of a whole template.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Macro<'a> {
    /// Its name, where it is written out.
    pub name: Option<&'a str>,
    /// The line that names it.
    pub line: usize,
}

impl Macro<'_> {
    /// Returns whether it is one of AWS's that change only what is their own.
    pub fn is_of_aws(&self) -> bool {
        self.name.is_some_and(|name| name.starts_with("AWS::") && name != INCLUDE)
    }
}

/// Returns the macros of a whole template, in its order.
pub fn macros(root: &Node) -> Vec<Macro<'_>> {
    let own = root.get("Transform").filter(|given| given.kind != Kind::Null);
    let of_list = |given| if Node::items(given).is_empty() { std::slice::from_ref(given) } else { given.items() };
    let others = root.get("Fn::Transform").into_iter();
    let all = own.map_or(&[][..], of_list).iter().chain(others);
    all.map(|one| Macro { name: one.as_text().or_else(|| one.get("Name")?.as_text()), line: one.line }).collect()
}

/// Returns whether `CloudFormation` refuses resources of AWS SAM in a template: no macro makes others of them, and none may be that does.
pub fn refuses_sam(root: &Node) -> bool {
    macros(root).iter().all(|one| one.is_of_aws() && one.name != Some(SAM))
}

/// Returns the first resource of AWS SAM in a template that has no macro for it, with its name and its type: `CloudFormation` refuses that
/// template.
pub fn refused(root: &Node) -> Option<(&str, &str, &Node)> {
    let resources = root.get("Resources").filter(|_| refuses_sam(root)).map_or(&[][..], Node::entries);
    let of_sam = |node: &'_ Node| node.get("Type").and_then(Node::as_text).is_some_and(|kind| kind.starts_with(OF_SAM));
    let (id, node) = resources.iter().find(|(_, node)| of_sam(node))?;
    Some((id, node.get("Type")?.as_text()?, node))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resources_of_sam_are_refused_where_nothing_makes_others_of_them() {
        for (head, is_refused) in [
            ("", true),
            ("Transform:\n", true),
            ("Transform: AWS::LanguageExtensions\n", true),
            ("Transform: [AWS::LanguageExtensions, AWS::SecretsManager-2020-07-23]\n", true),
            ("Transform: AWS::Serverless-2016-10-31\n", false),
            ("Transform: [AWS::LanguageExtensions, AWS::Serverless-2016-10-31]\n", false),
            ("Transform: {Name: AWS::Serverless-2016-10-31}\n", false),
            // What these make is not known.
            ("Transform: Own\n", false),
            ("Transform: [{Name: AWS::Include, Parameters: {Location: s3://x}}]\n", false),
            ("Fn::Transform: {Name: AWS::Include}\n", false),
            ("Transform: !Ref Any\n", false),
        ] {
            let yaml =
                format!("{head}Resources:\n  T: {{Type: AWS::SNS::Topic}}\n  F: {{Type: AWS::Serverless::Function}}\n");
            let root = crate::parse(&yaml).unwrap();
            let expected = is_refused.then_some(("F", "AWS::Serverless::Function"));
            assert_eq!(refused(&root).map(|(id, kind, _)| (id, kind)), expected, "{head}");
        }
        assert!(refused(&crate::parse("Resources: {T: {Type: AWS::SNS::Topic}}").unwrap()).is_none());
    }
}
