//! Notices by POST: to a WeChat or DingTalk group's robot, or to any address that takes JSON.

use std::sync::Arc;

use async_trait::async_trait;
use reqwest::{StatusCode, Url, header::CONTENT_TYPE};
use serde_json::{Value, json};

use super::{desk::Messenger, notice::Notice, sign::signed};
use crate::{
    execution::{
        BoxError, Web,
        web::{self, Limits},
    },
    job::{Alert, Webhook},
};

/// Posts notices.
pub(super) struct Robot {
    alert: Alert,
    web: Arc<Web>,
}

/// What to send where, and what an answer has to say.
struct Letter {
    webhook: Webhook,
    body: Value,
    answer: Answer,
}

/// What counts as delivered.
enum Answer {
    /// 200, and an `errcode` that is zero.
    NoErrorCode,
    /// Any status that means success.
    Success,
}

impl Robot {
    pub(super) fn new(alert: Alert, web: Arc<Web>) -> Self {
        Self { alert, web }
    }

    fn letter(&self, notice: &Notice) -> Option<Letter> {
        match &self.alert {
            Alert::Wechat(webhook) => Some(Letter {
                webhook: webhook.clone(),
                body: text(&notice.text()),
                answer: Answer::NoErrorCode,
            }),
            Alert::Dingtalk(robot) => {
                let mut webhook = robot.webhook.clone();
                if let Some(secret) = &robot.secret {
                    webhook.url = signed(&webhook.url, secret, notice.at);
                }
                let keyword = robot.keyword.as_deref().unwrap_or_default();
                let body = text(&format!("{keyword}{}", notice.text()));
                Some(Letter { webhook, body, answer: Answer::NoErrorCode })
            }
            Alert::Webhook(webhook) => Some(Letter {
                webhook: webhook.clone(),
                body: plain(notice),
                answer: Answer::Success,
            }),
            _ => None,
        }
    }
}

#[async_trait]
impl Messenger for Robot {
    async fn deliver(&self, notice: &Notice) -> Result<(), BoxError> {
        let letter = self.letter(notice).ok_or("this alert is not sent by POST")?;
        let url: Url = letter.webhook.url.parse().map_err(|_| "the webhook is not an address")?;
        let limits =
            Limits { connect: letter.webhook.connect_timeout, read: letter.webhook.read_timeout };
        let client = self.web.client(&url, limits).map_err(|failure| failure.to_string())?;
        // The path is a secret, too, with some of them.
        let host = url.host_str().unwrap_or_default().to_owned();
        let request =
            client.post(url).header(CONTENT_TYPE, "application/json").body(letter.body.to_string());
        let response =
            request.send().await.map_err(|error| format!("{host}: {}", web::told(error)))?;
        let status = response.status();
        let answer = web::text(response).await;
        judge(&letter.answer, status, &answer).map_err(|problem| format!("{host} {problem}").into())
    }
}

fn judge(wanted: &Answer, status: StatusCode, answer: &str) -> Result<(), String> {
    match wanted {
        Answer::Success if status.is_success() => Ok(()),
        Answer::NoErrorCode if status == StatusCode::OK => {
            let answer: Value = serde_json::from_str(answer).unwrap_or_default();
            match &answer["errcode"] {
                Value::Number(code) if code.as_i64() == Some(0) => Ok(()),
                Value::String(code) if code == "0" => Ok(()),
                code => Err(format!("answered errcode {code}: {}", answer["errmsg"])),
            }
        }
        _ => Err(format!("answered {status}")),
    }
}

/// What both robots take.
fn text(content: &str) -> Value {
    json!({ "msgtype": "text", "text": { "content": content } })
}

/// Everything there is to tell, in the names the console uses; and as `text`, for chats that look only there.
fn plain(notice: &Notice) -> Value {
    json!({
        "text": notice.text(),
        "jobName": notice.job.as_str(),
        "message": notice.message,
        "occurredAt": notice.at.to_string(),
        "runId": notice.run.as_ref().map(ToString::to_string),
        "shardingItem": notice.shard,
        "attempts": notice.attempts,
    })
}
