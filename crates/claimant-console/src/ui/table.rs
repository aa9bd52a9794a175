//! Lists. Where the window is narrow each row becomes a card, whose lines have the names of the columns.

use maud::{Markup, html};

/// A column of a list.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Column {
    name: &'static str,
    is_number: bool,
}

/// A column of text.
pub(crate) const fn text(name: &'static str) -> Column {
    Column { name, is_number: false }
}

/// A column of numbers, which stand below each other.
pub(crate) const fn number(name: &'static str) -> Column {
    Column { name, is_number: true }
}

fn class(column: &Column) -> Option<&'static str> {
    column.is_number.then_some("n")
}

/// Draws a list. Each row has a cell for each column; the first names the row. The roles are said again because browsers forget those
/// of a table that is drawn as cards.
pub(crate) fn table(label: &str, columns: &[Column], rows: impl IntoIterator<Item = Vec<Markup>>) -> Markup {
    draw(label, columns, rows.into_iter().map(|row| (None, row)))
}

/// Draws a list whose rows have buttons, each row with an id: when the list is drawn again, the button that has the focus stays that of
/// its own row.
pub(crate) fn table_of_acts(
    label: &str,
    columns: &[Column],
    rows: impl IntoIterator<Item = (String, Vec<Markup>)>,
) -> Markup {
    draw(label, columns, rows.into_iter().map(|(id, row)| (Some(id), row)))
}

fn draw(label: &str, columns: &[Column], rows: impl Iterator<Item = (Option<String>, Vec<Markup>)>) -> Markup {
    html! {
        table .list role="table" aria-label=(label) {
            thead role="rowgroup" {
                tr role="row" {
                    @for column in columns {
                        th scope="col" role="columnheader" class=[class(column)] { (column.name) }
                    }
                }
            }
            tbody role="rowgroup" {
                @for (id, row) in rows {
                    tr role="row" id=[id] {
                        @for (at, (cell, column)) in row.iter().zip(columns).enumerate() {
                            @if at == 0 {
                                th scope="row" role="rowheader" class=[class(column)] { (cell) }
                            } @else {
                                td role="cell" data-label=(column.name) class=[class(column)] { (cell) }
                            }
                        }
                    }
                }
            }
        }
    }
}
