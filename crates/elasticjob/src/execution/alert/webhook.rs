//! Posts notices to a WeChat or DingTalk robot, or to any address that accepts JSON.

use std::sync::Arc;

use async_trait::async_trait;
use reqwest::{StatusCode, Url, header::CONTENT_TYPE};
use serde_json::{Value, json};

use super::{dispatcher::AlertChannel, notice::Notice, sign::signed_url};
use crate::{
    execution::{
        BoxError, HttpClient, Outbound,
        http_client::{self, Timeouts},
        outbound::Refusal,
    },
    job::{Alert, Webhook},
    problem::printable,
};

pub(super) struct WebhookChannel {
    alert: Alert,
    http_client: Arc<HttpClient>,
    outbound: Outbound,
}

/// A request to send, and the answer that counts as delivered.
struct WebhookRequest {
    webhook: Webhook,
    body: Value,
    criterion: SuccessCriterion,
}

enum SuccessCriterion {
    /// Status 200 with an `errcode` of zero.
    ZeroErrorCode,
    /// Any success status.
    SuccessStatus,
}

impl WebhookChannel {
    pub(super) fn new(alert: Alert, http_client: Arc<HttpClient>, outbound: Outbound) -> Self {
        Self { alert, http_client, outbound }
    }

    fn request_for(&self, notice: &Notice) -> Option<WebhookRequest> {
        match &self.alert {
            Alert::Wechat(webhook) => Some(WebhookRequest {
                webhook: webhook.clone(),
                body: chat_message(&notice.text()),
                criterion: SuccessCriterion::ZeroErrorCode,
            }),
            Alert::Dingtalk(robot) => {
                let mut webhook = robot.webhook.clone();
                if let Some(secret) = &robot.secret {
                    webhook.url = signed_url(&webhook.url, secret, notice.at);
                }
                let keyword = robot.keyword.as_deref().unwrap_or_default();
                let body = chat_message(&format!("{keyword}{}", notice.text()));
                Some(WebhookRequest { webhook, body, criterion: SuccessCriterion::ZeroErrorCode })
            }
            Alert::Webhook(webhook) => Some(WebhookRequest {
                webhook: webhook.clone(),
                body: json_body(notice),
                criterion: SuccessCriterion::SuccessStatus,
            }),
            _ => None,
        }
    }
}

#[async_trait]
impl AlertChannel for WebhookChannel {
    async fn deliver(&self, notice: &Notice) -> Result<(), BoxError> {
        let prepared = self.request_for(notice).ok_or("this alert is not sent by POST")?;
        let url: Url = prepared.webhook.url.parse().map_err(|_| "the webhook URL is invalid")?;
        let timeouts = Timeouts {
            connect: prepared.webhook.connect_timeout,
            read: prepared.webhook.read_timeout,
        };
        let client = self.http_client.client(&url, timeouts, &self.outbound)?;
        // The path can be a secret, too, so errors name only the host.
        let host = url.host_str().unwrap_or_default().to_owned();
        let request = client
            .post(url)
            .header(CONTENT_TYPE, "application/json")
            .body(prepared.body.to_string());
        let response = request.send().await.map_err(|error| match Refusal::in_chain(&error) {
            Some(refusal) => BoxError::from(refusal.clone()),
            None => format!("{host}: {}", http_client::error_text(error)).into(),
        })?;
        let status = response.status();
        let answer = http_client::body_text(response).await;
        check_answer(&prepared.criterion, status, &answer)
            .map_err(|problem| format!("{host} {problem}").into())
    }
}

fn check_answer(
    criterion: &SuccessCriterion,
    status: StatusCode,
    answer: &str,
) -> Result<(), String> {
    match criterion {
        SuccessCriterion::SuccessStatus if status.is_success() => Ok(()),
        SuccessCriterion::ZeroErrorCode if status == StatusCode::OK => {
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

/// The body that WeChat and DingTalk robots accept.
fn chat_message(content: &str) -> Value {
    json!({ "msgtype": "text", "text": { "content": content } })
}

/// All fields of the notice under the names that the console uses, and `text` for chats that show only that.
fn json_body(notice: &Notice) -> Value {
    json!({
        "text": notice.text(),
        "jobName": notice.job.as_str(),
        "message": printable(&notice.message),
        "occurredAt": notice.at.to_string(),
        "runId": notice.run.as_ref().map(ToString::to_string),
        "shardingItem": notice.shard,
        "attempts": notice.attempts,
    })
}
