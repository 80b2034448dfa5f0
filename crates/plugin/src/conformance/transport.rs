//! Checks of the protocol itself: introduction, unknown methods, invalid messages, and the end.

use std::sync::Arc;

use serde_json::json;
use serde_json::value::RawValue;

use super::check::{CheckResult, CheckVerdict, ConformanceCheck};
use crate::connection::{CallFailure, Connection, EngineBounds, Launch};
use crate::health::EngineHealth;
use crate::protocol::{InitializeParams, InitializeResult, PROTOCOL_VERSION, code, method};
use crate::services::HostServices;

const START: &str = "the first question is `initialize`; `protocol`, `name`, `version`, `capabilities`";
const UNKNOWN: &str = "an engine that does not know a method answers with code -32601";
const LINES: &str = "JSON-RPC 2.0 over standard input and output, one message a line";
const END: &str = "the host ends it by closing its input";

pub(super) async fn all(
    name: &str,
    launch: &Launch,
    bounds: EngineBounds,
    services: &Arc<dyn HostServices>,
) -> Vec<ConformanceCheck> {
    let desk = ProcessUnderTest { name, launch, bounds, services };
    let mut checks = vec![ConformanceCheck::of("says who it is", START, desk.introduced().await)];
    if checks.iter().any(ConformanceCheck::has_failed) {
        return checks;
    }
    checks.push(ConformanceCheck::of(
        "says so when it does not know a method",
        UNKNOWN,
        desk.unknown_method().await,
    ));
    checks.push(ConformanceCheck::of(
        "continues after a line that is not a message",
        LINES,
        desk.no_message().await,
    ));
    checks.push(ConformanceCheck::of("ends when its input does", END, desk.end().await));
    checks
}

struct ProcessUnderTest<'a> {
    name: &'a str,
    launch: &'a Launch,
    bounds: EngineBounds,
    services: &'a Arc<dyn HostServices>,
}

impl ProcessUnderTest<'_> {
    async fn open(&self) -> Result<(Arc<Connection>, InitializeResult), String> {
        let health = Arc::<EngineHealth>::default();
        let connection = Connection::open(self.launch, self.bounds, self.services, &health)?;
        let greeting = InitializeParams {
            protocol: PROTOCOL_VERSION,
            host: concat!("throughline ", env!("CARGO_PKG_VERSION")).to_owned(),
            engine: self.name.to_owned(),
        };
        let asked = connection.ask(method::INITIALIZE, &greeting, self.bounds.start).await;
        let result = asked.map_err(words)?;
        let introduction = serde_json::from_str(result.get())
            .map_err(|error| format!("its introduction cannot be read: {error}: {}", shown(&result)))?;
        Ok((connection, introduction))
    }

    async fn introduced(&self) -> CheckResult {
        let (_, introduction) = self.open().await?;
        if introduction.protocol != PROTOCOL_VERSION {
            return Err(format!(
                "it speaks version {} of the protocol; this program speaks {PROTOCOL_VERSION}",
                introduction.protocol
            ));
        }
        if introduction.name.trim().is_empty() {
            return Err("its name is empty".to_owned());
        }
        Ok(CheckVerdict::Passed)
    }

    async fn unknown_method(&self) -> CheckResult {
        let (connection, _) = self.open().await?;
        match connection.ask("no_such_method", &json!({}), self.bounds.answer).await {
            Err(CallFailure::Error(error)) if error.code == code::UNKNOWN_METHOD => Ok(CheckVerdict::Passed),
            Err(CallFailure::Error(error)) => Err(format!("it answers with code {}", error.code)),
            Err(other) => Err(words(other)),
            Ok(result) => Err(format!("it answers {}", shown(&result))),
        }
    }

    async fn no_message(&self) -> CheckResult {
        let (connection, _) = self.open().await?;
        for line in ["this is no message\n", "{\"jsonrpc\":\"2.0\"\n", "\n"] {
            connection.write(line).await.map_err(|error| format!("it cannot be written to: {error}"))?;
        }
        match connection.ask("no_such_method", &json!({}), self.bounds.answer).await {
            Err(CallFailure::Gone(why)) => Err(format!("the next question has no answer: {why}")),
            _ => Ok(CheckVerdict::Passed),
        }
    }

    async fn end(&self) -> CheckResult {
        let (connection, _) = self.open().await?;
        match connection.close(self.bounds.answer).await {
            true => Ok(CheckVerdict::Passed),
            false => Err(format!("it still runs {} s later", self.bounds.answer.as_secs_f32())),
        }
    }
}

fn shown(result: &RawValue) -> String {
    result.get().chars().take(200).collect()
}

fn words(answer: CallFailure) -> String {
    match answer {
        CallFailure::Gone(why) | CallFailure::Unreadable(why) => why,
        CallFailure::Error(error) => format!("it answers with an error: {} ({})", error.message, error.code),
    }
}
