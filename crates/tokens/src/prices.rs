//! The cost of calls by list price. The prices are data (`prices.json`), with the date they were read.
//!
//! A price is never guessed: without an entry for the model, the seller or a used bucket there is no amount. Prices differ by day, by hour
//! and by the size of the prompt, so a call is priced as of when it was made. Not for: what a subscription, a batch or a negotiated
//! contract really charges.

use std::collections::HashMap;
use std::sync::LazyLock;

use serde::{Deserialize, Serialize};
use throughline_transcript::parse_rfc3339_millis;

use crate::usage::Usage;

/// A call whose price is computed.
#[derive(Clone, Copy, Debug)]
pub struct PricedCall<'a> {
    /// The model as the call named it; names with dates, prefixes and regions are recognised.
    pub model: &'a str,
    /// The provider: a name, or the address of an endpoint. Empty when unknown.
    pub provider: &'a str,
    /// The time of the call, in milliseconds since 1970.
    pub at_ms: i64,
    /// The tokens it used.
    pub usage: Usage,
    /// The part of the cache writes that lasts an hour.
    pub cache_write_1h: u64,
}

/// The cost of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Cost {
    /// Millionths of a dollar; `None` when the price is unknown.
    pub micro_usd: Option<u64>,
    /// The cost of the same tokens without a cache.
    pub uncached_micro_usd: Option<u64>,
    /// The source of the amounts, or why there are none.
    pub basis: PriceBasis,
}

/// The source of an amount.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PriceBasis {
    /// The list price of this model.
    List(&'static str),
    /// The user's own file.
    OwnFile,
    /// A subscription pays for it.
    Included,
    /// The list does not have the model.
    UnknownModel,
    /// The list has the model, but not for this seller, or not before this day.
    UnknownSeller,
    /// The model has no price for this bucket, which was used.
    UnpricedBucket(&'static str),
}

impl Cost {
    /// Returns the day on which the prices were read.
    #[must_use]
    pub fn prices_as_of() -> &'static str {
        &LIST.file.as_of
    }
}

impl PricedCall<'_> {
    /// Returns the list price of a call.
    ///
    /// ```
    /// use throughline_tokens::{PricedCall, Usage};
    ///
    /// let usage = Usage { input: 1_000_000, ..Usage::default() };
    /// let call = PricedCall { model: "nobody-knows-it", provider: "", at_ms: 0, usage, cache_write_1h: 0 };
    /// assert_eq!(call.list_cost().micro_usd, None, "an unknown price is not guessed");
    /// ```
    #[must_use]
    pub fn list_cost(&self) -> Cost {
        let unknown = |basis| Cost { micro_usd: None, uncached_micro_usd: None, basis };
        let (model, rates, factor) = match self.list_rates() {
            Ok(found) => found,
            Err(PriceBasis::Included) => {
                return Cost { micro_usd: Some(0), uncached_micro_usd: Some(0), basis: PriceBasis::Included };
            }
            Err(basis) => return unknown(basis),
        };
        match rates.amounts(self, factor) {
            Ok((micro_usd, uncached)) => Cost {
                micro_usd: Some(micro_usd),
                uncached_micro_usd: Some(uncached),
                basis: PriceBasis::List(&model.name),
            },
            Err(bucket) => unknown(PriceBasis::UnpricedBucket(bucket)),
        }
    }

    /// Returns the rates that apply to a call, with their factor; or why there are none.
    fn list_rates(&self) -> Result<(&'static ModelPrices, &'static Rates, f64), PriceBasis> {
        let seller = seller_of(self.provider);
        if LIST.file.included.contains(&seller) {
            return Err(PriceBasis::Included);
        }
        let (model, region) = find(self.model).ok_or(PriceBasis::UnknownModel)?;
        let rates = model.rates.iter().rev().find(|rates| rates.applies(self));
        let rates = rates.filter(|_| is_sold_by(model, &seller)).ok_or(PriceBasis::UnknownSeller)?;
        let factor = match region {
            Region::Everywhere => 1.0,
            Region::Somewhere => model.regional.unwrap_or(1.0),
        };
        Ok((model, rates, factor))
    }

    /// Returns its cost by bucket, by list price.
    pub(crate) fn list_cost_by_bucket(&self) -> Option<BucketAmounts> {
        let (_, rates, factor) = self.list_rates().ok()?;
        rates.by_bucket(self, factor)
    }
}

/// Millionths of a dollar for each bucket of a call, by the bucket's name in [`Usage`].
pub(crate) type BucketAmounts = [(&'static str, u64); 4];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PriceFile {
    as_of: String,
    #[expect(dead_code, reason = "tells readers of the file what the figures are")]
    unit: String,
    included: Vec<String>,
    makers: Vec<ModelMaker>,
    models: Vec<ModelPrices>,
}

/// The maker of models, and the sellers with the maker's prices.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ModelMaker {
    name: String,
    /// Others sell its models at their own prices, so a call must name the seller.
    #[serde(default)]
    open_weights: bool,
    sellers: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ModelPrices {
    name: String,
    #[serde(default)]
    also: Vec<String>,
    maker: String,
    /// The factor on the price at an endpoint bound to a region.
    regional: Option<f64>,
    /// The last rates that apply to a call are used.
    rates: Vec<Rates>,
}

/// Prices of one model, with their conditions.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Rates {
    /// From this day on (UTC).
    since: Option<String>,
    /// Between these hours of the day (UTC).
    hours: Option<(String, String)>,
    /// For prompts of more tokens than this.
    above: Option<u64>,
    input: f64,
    output: f64,
    cache_read: Option<f64>,
    cache_write: Option<f64>,
    cache_write_1h: Option<f64>,
}

impl Rates {
    /// Every price in it.
    pub(crate) fn all(&self) -> impl Iterator<Item = f64> {
        let cached = [self.cache_read, self.cache_write, self.cache_write_1h].into_iter().flatten();
        [self.input, self.output].into_iter().chain(cached)
    }

    pub(crate) fn applies(&self, call: &PricedCall<'_>) -> bool {
        const DAY_MS: i64 = 86_400_000;
        let begun = self.since.as_ref().is_none_or(|day| {
            parse_rfc3339_millis(&format!("{day}T00:00:00Z")).is_some_and(|since| call.at_ms >= since)
        });
        let in_hours = self.hours.as_ref().is_none_or(|(from, to)| {
            let ms_of = |time: &str| parse_rfc3339_millis(&format!("1970-01-01T{time}:00Z"));
            let now = call.at_ms.rem_euclid(DAY_MS);
            ms_of(from).zip(ms_of(to)).is_some_and(|(from, to)| (from..to).contains(&now))
        });
        begun && in_hours && self.above.is_none_or(|above| call.usage.prompt() > above)
    }

    /// Returns the amount of each bucket; `None` if one that was used has no price.
    pub(crate) fn by_bucket(&self, call: &PricedCall<'_>, factor: f64) -> Option<BucketAmounts> {
        let usage = &call.usage;
        let long_writes = call.cache_write_1h.min(usage.cache_write);
        let amount = |parts: [(u64, Option<f64>); 2]| {
            let mut sum = Amount::default();
            for (tokens, price) in parts.into_iter().filter(|(tokens, _)| *tokens > 0) {
                sum.add(tokens, price?, factor);
            }
            Some(sum.micro_usd())
        };
        let none = (0, None);
        Some([
            ("input", amount([(usage.input, Some(self.input)), none])?),
            ("output", amount([(usage.output, Some(self.output)), none])?),
            ("cache_read", amount([(usage.cache_read, self.cache_read), none])?),
            (
                "cache_write",
                amount([
                    (usage.cache_write - long_writes, self.cache_write),
                    (long_writes, self.cache_write_1h),
                ])?,
            ),
        ])
    }

    /// Returns the amount and what it would have been without a cache, or the bucket without a price.
    pub(crate) fn amounts(&self, call: &PricedCall<'_>, factor: f64) -> Result<(u64, u64), &'static str> {
        let usage = &call.usage;
        let long_writes = call.cache_write_1h.min(usage.cache_write);
        let buckets = [
            ("input", usage.input, Some(self.input)),
            ("output", usage.output, Some(self.output)),
            ("cache_read", usage.cache_read, self.cache_read),
            ("cache_write", usage.cache_write - long_writes, self.cache_write),
            ("cache_write_1h", long_writes, self.cache_write_1h),
        ];
        let mut sum = Amount::default();
        for (name, tokens, price) in buckets.into_iter().filter(|(_, tokens, _)| *tokens > 0) {
            sum.add(tokens, price.ok_or(name)?, factor);
        }
        let mut uncached = Amount::default();
        uncached.add(usage.prompt(), self.input, factor);
        uncached.add(usage.output, self.output, factor);
        Ok((sum.micro_usd(), uncached.micro_usd()))
    }
}

/// An exact amount: tokens times millionths of a dollar per million tokens.
#[derive(Default)]
struct Amount(u128);

impl Amount {
    fn add(&mut self, tokens: u64, usd_per_million: f64, factor: f64) {
        let rate = (usd_per_million * factor * 1e6).round() as u64;
        self.0 += u128::from(tokens) * u128::from(rate);
    }

    fn micro_usd(&self) -> u64 {
        u64::try_from((self.0 + 500_000) / 1_000_000).unwrap_or(u64::MAX)
    }
}

struct PriceList {
    file: PriceFile,
    by_name: HashMap<String, usize>,
}

static LIST: LazyLock<PriceList> = LazyLock::new(|| {
    let file: PriceFile = serde_json::from_str(include_str!("../prices.json")).unwrap_or(PriceFile {
        as_of: String::new(),
        unit: String::new(),
        included: Vec::new(),
        makers: Vec::new(),
        models: Vec::new(),
    });
    let names = file.models.iter().enumerate().flat_map(|(index, model)| {
        std::iter::once(&model.name).chain(&model.also).map(move |name| (name.clone(), index))
    });
    let by_name = names.collect();
    PriceList { file, by_name }
});

/// The region of an endpoint, as far as the name of the model shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Region {
    Everywhere,
    Somewhere,
}

/// Returns the entry of a model. Only parts that do not change the price are removed from its name: seller, region, release date, the
/// revision of an endpoint.
fn find(model: &str) -> Option<(&'static ModelPrices, Region)> {
    let lower = model.trim().to_ascii_lowercase();
    let last = lower.rsplit('/').next().unwrap_or_default();
    let (name, region) = without_vendor(last);
    let mut name: String = name.replace(['.', '_', ' '], "-");
    loop {
        if let Some(entry) = LIST.by_name.get(&name).and_then(|&index| LIST.file.models.get(index)) {
            return Some((entry, region));
        }
        let shorter = without_suffix(&name)?.to_owned();
        name = shorter;
    }
}

/// Removes a vendor prefix such as `us.anthropic.` from a name.
fn without_vendor(name: &str) -> (&str, Region) {
    const REGIONS: [&str; 8] = ["us", "eu", "apac", "au", "jp", "ca", "us-gov", "global"];
    const VENDORS: [&str; 9] =
        ["anthropic", "openai", "google", "deepseek", "mistral", "moonshotai", "qwen", "minimax", "zai"];
    let (mut rest, mut region) = (name, Region::Everywhere);
    if let Some((first, after)) = rest.split_once('.')
        && REGIONS.contains(&first)
        && after.split_once('.').is_some_and(|(vendor, _)| VENDORS.contains(&vendor))
    {
        region = if first == "global" { Region::Everywhere } else { Region::Somewhere };
        rest = after;
    }
    if let Some((vendor, after)) = rest.split_once('.')
        && VENDORS.contains(&vendor)
    {
        rest = after;
    }
    (rest, region)
}

/// Removes one suffix that does not change the price; `None` if there is none.
fn without_suffix(name: &str) -> Option<&str> {
    for suffix in ["-latest", "[1m]", "@default", ":thinking", ":beta"] {
        if let Some(rest) = name.strip_suffix(suffix) {
            return Some(rest);
        }
    }
    let all_digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let is_day = |text: &str| {
        let digits = text.replace('-', "");
        digits.len() == 8 && digits.starts_with("20") && all_digits(&digits)
    };
    for mark in [":", "-v"] {
        if let Some((rest, number)) = name.rsplit_once(mark)
            && all_digits(number)
        {
            return Some(rest);
        }
    }
    // `20260201` or `2026-02-01` after a dash or an at sign.
    ["20260201".len(), "2026-02-01".len()].into_iter().find_map(|length| {
        let at = name.len().checked_sub(length + 1)?;
        let rest = name.get(..at)?;
        let day = name.get(at..)?.strip_prefix(['-', '@'])?;
        is_day(day).then_some(rest)
    })
}

/// Returns a seller's name: the host of an address, in lower case and with dashes.
fn seller_of(provider: &str) -> String {
    let name = match provider.split_once("://") {
        Some((_, address)) => address.split(['/', ':', '?']).next().unwrap_or_default(),
        None => provider,
    };
    name.trim().to_ascii_lowercase().replace(['_', ' '], "-")
}

fn is_sold_by(model: &ModelPrices, seller: &str) -> bool {
    let maker = LIST.file.makers.iter().find(|maker| maker.name == model.maker);
    maker.is_some_and(|maker| match seller {
        "" => !maker.open_weights,
        _ => maker.sellers.iter().any(|known| known == seller),
    })
}

#[cfg(test)]
#[path = "prices_tests.rs"]
mod tests;
