//! Buttons, fields, and acts that ask first. Everything works without a script.

use maud::{Markup, html};

use crate::console::FORM;

/// Draws a form of one button that does something: a `POST` to `action` with these hidden fields.
pub(crate) fn act(action: &str, label: &str, hidden: &[(&str, &str)]) -> Markup {
    html! {
        form .act method="post" action=(action) {
            (self::hidden(hidden))
            button type="submit" { (label) }
        }
    }
}

/// Draws the same where several on a page have one label: a screen reader says what this one is about, too.
pub(crate) fn act_on(action: &str, label: &str, what: &str, hidden: &[(&str, &str)]) -> Markup {
    html! {
        form .act method="post" action=(action) {
            (self::hidden(hidden))
            button type="submit" aria-label={ (label) " " (what) } { (label) }
        }
    }
}

/// Draws the same, as a button that cannot be clicked where the act `can` do nothing: in a page that is drawn again, no button becomes that
/// of another act while someone is about to click it. The number of its form stays only until that changes: an act that can be done again is
/// another one.
pub(crate) fn act_if(
    can: bool,
    action: &str,
    (label, what): (&str, &str),
    number: &str,
    hidden: &[(&str, &str)],
) -> Markup {
    html! {
        form .act method="post" action=(action) {
            input id={ (label) "-" (what) "-" (can) } type="hidden" name=(FORM) value=(number) hx-morph-skip;
            (self::hidden(hidden))
            button type="submit" aria-label={ (label) " " (what) } disabled[!can] { (label) }
        }
    }
}

/// Draws an act that asks first: the button unfolds what it will do, and a second button that does it.
pub(crate) fn confirm(label: &str, question: &str, form: &Markup) -> Markup {
    html! { details .confirm { summary { (label) } div .sure { p { (question) } (form) } } }
}

/// Draws the same where several on a page have one label.
pub(crate) fn confirm_on(label: &str, what: &str, question: &str, form: &Markup) -> Markup {
    html! {
        details .confirm {
            summary aria-label={ (label) " " (what) } { (label) }
            div .sure { p { (question) } (form) }
        }
    }
}

/// Draws an act that asks first only where it `asks`: in a stack that works for others.
pub(crate) fn confirm_if(asks: bool, label: &str, question: &str, form: &Markup) -> Markup {
    if asks { confirm(label, question, form) } else { form.clone() }
}

/// Draws hidden fields. The number of a form stays while its page is drawn again: a second click is then one on the same form.
pub(crate) fn hidden(fields: &[(&str, &str)]) -> Markup {
    html! {
        @for (name, value) in fields {
            input type="hidden" name=(name) value=(value) hx-morph-skip[*name == FORM];
        }
    }
}

/// Draws a field under its label.
pub(crate) fn field(label: &str, control: &Markup) -> Markup {
    html! { label .field { span { (label) } (control) } }
}

/// Draws a choice of one of several: values with their names.
pub(crate) fn select<'a>(
    name: &str,
    options: impl IntoIterator<Item = (&'a str, &'a str)>,
    chosen: Option<&str>,
) -> Markup {
    html! {
        select name=(name) {
            @for (value, label) in options { option value=(value) selected[chosen == Some(value)] { (label) } }
        }
    }
}
