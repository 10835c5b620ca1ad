//! Opening a database, and what can be wrong with it.

use std::time::Duration;

use elasticjob::history::{HistoryUrl, RunFilter, Sink, SinkError, Store, StoreError};
use testbed::free_port;
use tokio::task::JoinSet;

use crate::{
    ground::{Ground, Kind},
    story::done,
};

pub(crate) async fn several_may_open_it_at_once(ground: &Ground) {
    let mut opening = JoinSet::new();
    for _ in 0..8 {
        let url = ground.url();
        opening.spawn(async move { Store::open(&url).await.map(|_| ()) });
    }

    for answer in opening.join_all().await {
        answer.unwrap();
    }
    assert_eq!(ground.number("SELECT COUNT(*) FROM ELASTICJOB_SCHEMA").await, 1);
}

pub(crate) async fn opening_again_changes_nothing(ground: &Ground) {
    ground.open().await.keep(&done("settle", 0, 5)).await.unwrap();

    let again = ground.open().await;

    assert_eq!(again.runs(&RunFilter::default()).await.unwrap().rows.len(), 1);
}

pub(crate) async fn somebody_elses_table_is_left_alone_and_told(ground: &Ground) {
    if ground.kind == Kind::Sqlite {
        drop(ground.open().await);
        ground.say("DROP TABLE JOB_EXECUTION_LOG").await;
    }
    ground.say("CREATE TABLE JOB_EXECUTION_LOG (id VARCHAR(10), note VARCHAR(10))").await;

    let error = Store::open(&ground.url()).await.unwrap_err();

    let StoreError::Refused { problem, .. } = &error else { panic!("{error}") };
    assert_eq!(
        problem,
        "there is a table JOB_EXECUTION_LOG without the column job_name: it is not ElasticJob's"
    );
    assert!(error.to_string().contains("; hint: rename that table"), "{error}");
}

pub(crate) async fn tables_of_a_later_version_are_left_alone(ground: &Ground) {
    ground.open().await;
    // There it is done in another way.
    ground.say("DROP TABLE ELASTICJOB_MISSED").await;
    ground.say("INSERT INTO ELASTICJOB_SCHEMA (version) VALUES (999)").await;

    let error = Store::open(&ground.url()).await.unwrap_err();

    assert!(error.to_string().contains("version 999"), "{error}");
    assert!(!ground.has("ELASTICJOB_MISSED").await, "nothing was made");
}

pub(crate) async fn tables_of_an_earlier_version_are_completed_and_say_so(ground: &Ground) {
    earlier(ground).await;

    ground.open().await;

    assert!(ground.has("ELASTICJOB_MISSED_JOB").await);
    assert!(ground.number("SELECT COUNT(*) FROM ELASTICJOB_SCHEMA WHERE version > 1").await > 0);
}

pub(crate) async fn who_may_only_read_sees_what_is_there_without_the_newest_index(ground: &Ground) {
    earlier(ground).await;
    ground.allow_reading().await;

    let guest = Store::open(&ground.guest.parse().unwrap()).await.unwrap();

    assert_eq!(guest.runs(&RunFilter::default()).await.unwrap().rows.len(), 1);
    assert!(!ground.has("ELASTICJOB_MISSED_JOB").await);
}

/// A run, in tables as an earlier version made them.
async fn earlier(ground: &Ground) {
    ground.open().await.keep(&done("settle", 0, 5)).await.unwrap();
    ground.drop_index("ELASTICJOB_MISSED", "ELASTICJOB_MISSED_JOB").await;
    ground.say("UPDATE ELASTICJOB_SCHEMA SET version = 1").await;
}

/// On large tables it takes longer than whoever opens it waits.
pub(crate) async fn changing_the_tables_goes_on_when_whoever_began_it_is_gone(ground: &Ground) {
    const INDEXES: [&str; 3] =
        ["ELASTICJOB_LOG_JOB", "ELASTICJOB_LOG_TIME", "ELASTICJOB_LOG_INSTANCE"];
    drop(ground.open().await);
    for index in INDEXES {
        ground.drop_index("JOB_EXECUTION_LOG", index).await;
    }
    let are_made = async || {
        for index in INDEXES {
            if !ground.has(index).await {
                return false;
            }
        }
        true
    };
    let opening = async |patience: Duration| {
        tokio::time::timeout(patience, Store::open(&ground.url())).await.is_ok()
    };

    if let Some(held) = ground.hold("JOB_EXECUTION_LOG").await {
        let mut beginner = JoinSet::new();
        let url = ground.url();
        beginner.spawn(async move { Store::open(&url).await.map(|_| ()) });
        soon("it begins", async || ground.waiting().await > 0).await;
        beginner.shutdown().await;
        drop(held);
    } else {
        // There is no way to make it wait: it has a lot to do, and nobody waits long enough for that.
        ground.say(MANY_ROWS).await;
        soon("one begins, and it goes on", async || opening(Duration::from_millis(100)).await)
            .await;
    }

    soon("it goes on", are_made).await;
}

const MANY_ROWS: &str = "\
    WITH RECURSIVE n (seq) AS (SELECT 1 UNION ALL SELECT seq + 1 FROM n WHERE seq < 300000) \
    INSERT INTO JOB_EXECUTION_LOG (id, job_name, task_id, hostname, ip, sharding_item, execution_source, is_success) \
    SELECT seq, 'legacy', 't', 'h', 'i', 0, 'NORMAL_TRIGGER', 1 FROM n";

/// Waits until it is so, and not for ever.
async fn soon(what: &str, is_so: impl AsyncFn() -> bool) {
    let soon = async {
        while !is_so().await {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_mins(1), soon).await.expect(what);
}

pub(crate) async fn who_may_not_make_tables_is_told_which_rights_are_missing(ground: &Ground) {
    let url: HistoryUrl = ground.guest.parse().unwrap();
    if ground.kind == Kind::Sqlite {
        // A file that is not there cannot be read either.
        drop(ground.open().await);
        ground.say("DROP TABLE ELASTICJOB_MISSED").await;
    }

    let error = Store::open(&url).await.unwrap_err();

    assert!(matches!(error, StoreError::NotAuthorised { .. }), "{error:?}");
    assert!(error.to_string().contains("; hint: "), "{error}");
    assert!(!error.to_string().contains("hunter2"), "{error}");
}

pub(crate) async fn who_may_only_read_can_ask_and_not_keep(ground: &Ground) {
    ground.open().await.keep(&done("settle", 0, 5)).await.unwrap();
    ground.allow_reading().await;

    let guest = Store::open(&ground.guest.parse().unwrap()).await.unwrap();
    let refused = guest.keep(&done("settle", 1000, 5)).await.unwrap_err();

    assert_eq!(guest.runs(&RunFilter::default()).await.unwrap().rows.len(), 1);
    assert!(matches!(refused, SinkError::Refused(_)), "{refused:?}");
}

pub(crate) async fn nobody_there_is_told_with_a_way_out_and_without_the_password(ground: &Ground) {
    let port = free_port();
    let (nobody, nothing) = match ground.kind {
        Kind::Sqlite => {
            ("sqlite:/dev/null/history.db".to_owned(), "sqlite:/proc/version".to_owned())
        }
        Kind::Postgres => (
            format!("postgres://jane:hunter2@127.0.0.1:{port}/history"),
            ground.url.replace("/history_", "/nothing_"),
        ),
        Kind::MariaDb => (
            format!("mysql://jane:hunter2@127.0.0.1:{port}/history"),
            ground.url.replace("/history_", "/nothing_"),
        ),
    };
    let open = async |url: &str| Store::open(&url.parse().unwrap()).await.unwrap_err();

    let (nobody, nothing) = (open(&nobody).await, open(&nothing).await);

    if ground.kind != Kind::Sqlite {
        assert!(matches!(nobody, StoreError::Unreachable { .. }), "{nobody:?}");
    }
    assert!(!matches!(nothing, StoreError::Unreachable { .. }), "{nothing:?}");
    for error in [nobody.to_string(), nothing.to_string()] {
        assert!(error.starts_with("history in ") && error.contains("; hint: "), "{error}");
        assert!(!error.contains("hunter2"), "{error}");
    }
}
