//! The language of a question: which of its words carry no meaning, and which words are forms of one another.
//!
//! The language is determined from the question alone, by its script and function words, with English as the default.
//! Texts are compared with the stemmer of the question, so nothing about languages is stored.

use rust_stemmers::{Algorithm, Stemmer};

use crate::case_fold::fold_text;

/// A stem is taken of words of at least so many letters: shorter ones have hardly any forms.
const MIN_STEMMED_LETTERS: usize = 3;

/// Function words of one language. They say which language a question is in, and are left out of its words.
struct FunctionWords {
    stemmer: Algorithm,
    words: &'static str,
}

const ENGLISH: FunctionWords = FunctionWords {
    stemmer: Algorithm::English,
    words: "a an the and or but if then of in on at to for from by with without is are was were be been being am do does \
            did done doing have has had having i you he she it we they me him her us them my your his its our their this \
            that these those there here what which who whom whose when where why how can could should would will shall \
            may might must not no nor so as than too very just also about into over under again further once only own \
            same such any all some each both few more most other s t don",
};

/// Every language with function words here, English first: of two that fit equally well the first is taken.
const LANGUAGES: &[FunctionWords] = &[
    ENGLISH,
    FunctionWords {
        stemmer: Algorithm::German,
        words: "der die das den dem des ein eine einen einem einer eines und oder aber wenn dann von im in am an auf zu zum \
                zur für aus bei mit ohne ist sind war waren sein bin wird werden wurde wurden haben hat hatte hatten ich du \
                er sie es wir ihr mich mir dich dir uns euch sich mein dein unser dieser diese dieses diesem diesen jener was \
                welche welcher welches wer wen wem wessen wann wo warum wieso weshalb wie kann können konnte soll sollte \
                will muss nicht kein keine so als auch nur noch schon über unter nach vor wieder etwas alle jede jeder",
    },
    FunctionWords {
        stemmer: Algorithm::French,
        words: "le la les un une des du de et ou mais si alors dans sur à au aux pour par avec sans est sont était étaient être \
                été a ont avait avaient avoir je tu il elle on nous vous ils elles me te se mon ton son notre votre leur ce cet \
                cette ces que quoi quel quelle quels quelles qui dont quand où pourquoi comment peut pouvait doit ne pas plus \
                aussi très l d c s n qu y en",
    },
    FunctionWords {
        stemmer: Algorithm::Spanish,
        words: "el la los las un una unos unas y o pero si entonces de del en al a para por con sin es son era eran ser sido \
                está están estaba ha han había haber yo tú él ella nosotros ustedes ellos me te se mi tu su nuestro este esta \
                estos estas ese esa eso lo que qué cuál cuáles quién quiénes cuándo dónde cómo porqué puede podía debe no más \
                también muy ya",
    },
    FunctionWords {
        stemmer: Algorithm::Italian,
        words: "il lo la i gli le un uno una e o ma se allora di del della dei delle in nel nella su sul a al alla per da dal \
                con senza è sono era erano essere stato ha hanno aveva avere io tu lui lei noi voi loro mi ti si mio tuo suo \
                nostro questo questa questi queste quello quella che cosa quale quali chi quando dove perché come può deve non \
                più anche molto già",
    },
    FunctionWords {
        stemmer: Algorithm::Portuguese,
        words: "o a os as um uma uns umas e ou mas se então de do da dos das em no na nos nas para por com sem é são era eram ser \
                sido está estão foi foram tem tinha ter eu tu ele ela nós vocês eles me te meu teu seu nosso este esta estes \
                estas esse essa isso que qual quais quem quando onde porque como pode podia deve não mais também muito já",
    },
    FunctionWords {
        stemmer: Algorithm::Dutch,
        words: "de het een en of maar als dan van in op aan te voor uit bij met zonder is zijn was waren ben wordt worden werd \
                heeft hebben had hadden ik jij hij zij wij jullie me mij je ons zich mijn jouw deze dit die dat wat welke wie \
                wanneer waar waarom hoe kan kunnen kon moet zou niet geen zo ook nog al over onder naar weer alle elke",
    },
    FunctionWords {
        stemmer: Algorithm::Russian,
        words: "и или но если то в на с со к ко по за из от до у о об для без при не ни же ли бы это этот эта эти тот та те что \
                как какой какая какие кто где когда почему зачем чем был была было были быть есть я ты он она мы вы они его \
                её их мой твой наш все всё уже ещё",
    },
];

/// English words whose forms share no beginning with them, or too little for a stemmer: the word, then its forms. Questions ask in
/// the present (`where did she go`), answers stand in the past (`I went`).
const IRREGULAR_ENGLISH: &str = "be was were been|become became|begin began begun|bend bent|bind bound|bite bit bitten|blow blew blown|\
    break broke broken|bring brought|build built|buy bought|catch caught|choose chose chosen|come came|deal dealt|dig dug|\
    do did done|draw drew drawn|drink drank drunk|drive drove driven|eat ate eaten|fall fell fallen|feed fed|feel felt|\
    fight fought|find found|fly flew flown|forget forgot forgotten|forgive forgave forgiven|freeze froze frozen|get got gotten|\
    give gave given|go went gone|grow grew grown|hang hung|have had|hear heard|hide hid hidden|hold held|keep kept|\
    know knew known|lay laid|lead led|leave left|lend lent|lie lay lain|light lit|lose lost|make made|mean meant|meet met|\
    pay paid|ride rode ridden|ring rang rung|rise rose risen|run ran|say said|see saw seen|seek sought|sell sold|send sent|\
    shake shook shaken|shine shone|shoot shot|sing sang sung|sink sank sunk|sit sat|sleep slept|speak spoke spoken|spend spent|\
    spin spun|stand stood|steal stole stolen|stick stuck|strike struck|swear swore sworn|sweep swept|swim swam swum|\
    swing swung|take took taken|teach taught|tear tore torn|tell told|think thought|throw threw thrown|\
    understand understood|wake woke woken|wear wore worn|weep wept|win won|wind wound|write wrote written|\
    child children|person people|man men|woman women|mouse mice|foot feet|tooth teeth|wife wives|life lives|knife knives|\
    shelf shelves|half halves|leaf leaves|index indices|matrix matrices|good better best|bad worse worst|datum data";

/// What is known of the language of a question.
pub(crate) struct Language {
    stemmer: Stemmer,
    /// Function words as terms are compared, sorted.
    function_words: Vec<String>,
    /// Whether irregular forms are those of English.
    is_english: bool,
}

impl Language {
    /// The language whose function words a question has most of.
    pub(crate) fn of_words<'t>(words: impl Iterator<Item = &'t str> + Clone) -> Self {
        let mut best = (0, function_words(&ENGLISH), &ENGLISH);
        for language in LANGUAGES {
            let candidates = function_words(language);
            let met = words.clone().filter(|word| holds(&candidates, word)).count();
            if met > best.0 {
                best = (met, candidates, language);
            }
        }
        let is_english = best.2.stemmer == Algorithm::English;
        Self { stemmer: Stemmer::create(best.2.stemmer), function_words: best.1, is_english }
    }

    /// The other forms of a word that has irregular ones, or is one.
    pub(crate) fn irregular_forms(&self, word: &str) -> Vec<String> {
        let entries = IRREGULAR_ENGLISH.split('|').filter(|_| self.is_english);
        let stem = self.stem(word);
        let mut forms = Vec::new();
        for entry in entries {
            let Some(base) = entry.split_whitespace().next() else { continue };
            let is_of_base = stem.is_some() && self.stem(base) == stem;
            if is_of_base || entry.split_whitespace().any(|form| form == word) {
                forms.extend(entry.split_whitespace().map(str::to_owned));
                forms.extend(["s", "es", "ing"].map(|ending| format!("{base}{ending}")));
            }
        }
        forms.retain(|form| form != word);
        forms
    }

    /// Whether a word, as terms are compared, carries no meaning.
    pub(crate) fn is_function_word(&self, word: &str) -> bool {
        holds(&self.function_words, word)
    }

    /// What all forms of a word share; `None` for what has no forms: numbers, names with digits, very short words.
    pub(crate) fn stem(&self, word: &str) -> Option<String> {
        let is_word =
            word.chars().all(char::is_alphabetic) && word.chars().nth(MIN_STEMMED_LETTERS - 1).is_some();
        is_word.then(|| self.stemmer.stem(word).into_owned())
    }
}

fn function_words(of: &FunctionWords) -> Vec<String> {
    let mut words: Vec<String> = of
        .words
        .split_whitespace()
        .map(|word| {
            let mut folded = String::with_capacity(word.len());
            fold_text(word, &mut folded);
            folded
        })
        .collect();
    words.sort_unstable();
    words
}

fn holds(sorted: &[String], word: &str) -> bool {
    sorted.binary_search_by(|other| other.as_str().cmp(word)).is_ok()
}

#[cfg(test)]
#[path = "language_tests.rs"]
mod tests;
