//! The output of `models`: one model in full, or a table of many.

use owo_colors::OwoColorize;
use throughline_provider::WindowSource;
use throughline_tokens::{Cost, OwnValue, PriceBasis};

use super::{ListedRow, MillionTokenPrices, ModelDetails};
use crate::model_client::key_words;
use crate::ui::figures::{dollars, rounded};
use crate::ui::table::{Side, TextTable};
use crate::ui::text::{on_one_line, thousands, wrap};

/// The width of the labels, in columns.
const LABEL_COLUMNS: usize = 16;

/// Formats the details of one model.
pub(crate) fn one(page: &ModelDetails, width: usize) -> String {
    let model = &page.model;
    let facts = &model.known.facts;
    let mut lines = Lines { out: format!("{}\n", on_one_line(&model.model).bold()), width };
    match &model.endpoint {
        Some(endpoint) => lines.add(
            "endpoint",
            &format!(
                "{} at {}, {} wire, {}",
                endpoint.kind,
                endpoint.base.as_str(),
                endpoint.wire,
                key_words(&endpoint.key_source)
            ),
        ),
        None => lines.add("endpoint", "none is configured"),
    }
    lines.add("window", &format!("{} tokens, {}", thousands(model.window.tokens), model.window.source));
    let mut is_first = true;
    // The default is used only if no source knows the model; it is not a differing statement about it.
    let others = model.window.candidates.iter();
    let others =
        others.filter(|other| ![&model.window.source, &WindowSource::Default].contains(&&other.source));
    for other in others {
        let label = if is_first { "  otherwise" } else { "" };
        lines.add(label, &format!("{}, {}", thousands(other.tokens), other.source));
        is_first = false;
    }
    if let Some(unused) = &model.unused_window {
        lines.add("", unused);
    }
    if let Some(tokens) = facts.max_output_tokens {
        let source = if page.is_own(OwnValue::MaxOutput) { "your catalogue file" } else { "catalogue" };
        lines.add("longest answer", &format!("{} tokens, {source}", thousands(tokens)));
    }
    match &page.limits {
        Some(limits) => {
            let threshold = &limits.threshold_tokens;
            let mut words = format!("{} tokens", thousands(threshold.effective));
            if threshold.configured != threshold.effective {
                words.push_str(&format!(" (configured {}", thousands(threshold.configured)));
                words.push_str(&threshold.reason.map_or(")".to_owned(), |reason| format!(", {reason})")));
            }
            if let Some(notice) = model.threshold.origin.notice(&model.model) {
                words.push_str(&format!("; {notice}"));
            }
            lines.add("compaction at", &words);
        }
        None => lines.add(
            "compaction at",
            "nowhere: the window is too small to work with; `model.context_length` sets the real one",
        ),
    }
    let caching = model.cache.to_string();
    let caching = match &model.endpoint {
        Some(_) => caching.strip_prefix("Prompt caching: ").unwrap_or(&caching),
        None => "as the endpoint does it",
    };
    let minimum = facts.cache_minimum_tokens.map(|tokens| format!(", from {} tokens on", thousands(tokens)));
    lines.add("prompt caching", &format!("{caching}{}", minimum.unwrap_or_default()));
    lines.add(
        "tokens",
        &format!("estimated with the weights of the {} family", model.known.family_on(model.wire).name()),
    );
    lines.add("price", &price_words(&page.rates));
    lines.out
}

/// Formats a table of models.
pub(crate) fn list(title: &str, rows: &[ListedRow], width: usize) -> String {
    if rows.is_empty() {
        return format!("{title}: none\n");
    }
    let mut table = TextTable::new(&[
        ("model", Side::Left),
        ("window", Side::Right),
        ("in", Side::Right),
        ("out", Side::Right),
        ("window from", Side::Left),
    ]);
    for row in rows {
        let price = |rate: Option<u64>| rate.map_or_else(|| "?".to_owned(), dollars);
        let source = match &row.model.window.source {
            WindowSource::Catalogue(entry) if *entry == row.model.model => "catalogue".to_owned(),
            source => source.to_string(),
        };
        table.row([
            on_one_line(&row.model.model),
            rounded(row.model.window.tokens),
            price(row.rates.input),
            price(row.rates.output),
            source,
        ]);
    }
    let footing = format!(
        "Prices of a million tokens in dollars, as of {}. `throughline models MODEL` shows more.\n",
        Cost::prices_as_of()
    );
    format!("{}\n\n{}\n{}", title.bold(), table.render(width, 0), wrap(&footing, width, 0))
}

/// Formats the prices per million tokens.
fn price_words(rates: &MillionTokenPrices) -> String {
    if rates.basis == PriceBasis::Included {
        return "paid for by a subscription".to_owned();
    }
    let Some(input) = rates.input else {
        return match rates.basis {
            PriceBasis::UnknownSeller => "not known at this provider".to_owned(),
            _ => "not known".to_owned(),
        };
    };
    let mut words = format!("{} a million tokens in", dollars(input));
    let others = [
        (rates.output, "out"),
        (rates.cache_read, "read from the cache"),
        (rates.cache_write_5m, "written to it"),
        (rates.cache_write_1h.filter(|rate| Some(*rate) != rates.cache_write_5m), "written for an hour"),
    ];
    for (rate, what) in others {
        if let Some(rate) = rate {
            words.push_str(&format!(", {} {what}", dollars(rate)));
        }
    }
    match rates.basis {
        PriceBasis::OwnFile => words.push_str(" (your catalogue file)"),
        _ => words.push_str(&format!(" (list price of {})", Cost::prices_as_of())),
    }
    words
}

/// Lines with a label and a value.
struct Lines {
    out: String,
    width: usize,
}

impl Lines {
    fn add(&mut self, label: &str, value: &str) {
        let indent = LABEL_COLUMNS + 2;
        let room = self.width.saturating_sub(indent).max(20);
        let value = wrap(value, room, 0);
        for (at, line) in value.lines().enumerate() {
            let label = if at == 0 { label } else { "" };
            let padded = format!("{label:<LABEL_COLUMNS$}");
            self.out.push_str(&format!("  {}{line}\n", padded.dimmed()));
        }
    }
}
