//! Runs the statements of `docs/fencing.md`, on a real PostgreSQL.

use std::{path::Path, time::Duration};

use chaos::{
    Cluster, ClusterConfig, Database, Execution, StepJob, TABLE, WRITE, executions,
    wait_until_quiescent,
};
use testbed::{Postgres, ZooKeeper};
use tokio::task::JoinSet;
use tokio_postgres::{NoTls, types::Type};

const PAGE: &str = include_str!("../../../docs/fencing.md");

/// The statements on the page, in order.
fn statements() -> Vec<String> {
    let blocks = PAGE.split("```sql\n").skip(1).filter_map(|rest| rest.split("```").next());
    let plain = |block: &str| block.lines().map(str::trim).collect::<Vec<_>>().join(" ");
    blocks.map(|block| plain(block).trim().to_owned()).collect()
}

#[test]
fn documented_statements_are_those_of_the_workers() {
    let plain = |statement: &str| statement.lines().map(str::trim).collect::<Vec<_>>().join(" ");

    assert_eq!(statements()[..2], [plain(TABLE), plain(WRITE)]);
}

#[tokio::test]
#[ignore = "needs a real PostgreSQL: make test"]
async fn write_with_an_older_token_changes_and_inserts_nothing() {
    let postgres = Postgres::start();
    let (client, connection) = tokio_postgres::connect(&postgres.url(), NoTls).await.unwrap();
    let mut background = JoinSet::new();
    background.spawn(connection);
    let statements = statements();
    let [table, write, insert] = [0, 1, 2].map(|index| statements[index].as_str());
    let rows = "CREATE TABLE payment (item int, amount bigint, token bigint);
                INSERT INTO settlement (job, item) VALUES ('settle', 0)";
    client.batch_execute(&format!("{table}; {rows}")).await.unwrap();

    let types = [Type::INT8, Type::INT8, Type::TEXT, Type::INT4];
    let mut changed = Vec::new();
    for statement in [write, insert] {
        let statement = client.prepare_typed(statement, &types).await.unwrap();
        for token in [7_i64, 7, 9, 8] {
            let rows = client.execute(&statement, &[&1_i64, &token, &"settle", &0_i32]).await;
            changed.push(rows.unwrap());
        }
    }

    // The updates left token 9 behind, so that of the inserts only the one with token 9 succeeds.
    assert_eq!(changed, [1, 1, 1, 0, 0, 0, 1, 0]);
    let settled = client.query_one("SELECT amount, token FROM settlement", &[]).await.unwrap();
    assert_eq!((settled.get::<_, i64>(0), settled.get::<_, i64>(1)), (3, 9));
    let paid = client.query("SELECT token FROM payment", &[]).await.unwrap();
    assert_eq!(paid.iter().map(|row| row.get::<_, i64>(0)).collect::<Vec<_>>(), [9]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a real ZooKeeper and a real PostgreSQL: make test"]
async fn writes_of_a_thawed_worker_are_refused_after_a_takeover() {
    let (server, postgres) =
        tokio::task::block_in_place(|| (ZooKeeper::start(), Postgres::start()));
    let job = StepJob::new("settle", "0/8 * * * * ?", 2, 8, Duration::from_millis(300)).stubborn();
    let jobs = [job];
    let database = Database::connect(&postgres.url()).await.unwrap();
    database.prepare(&jobs).await.unwrap();
    let mut cluster = Cluster::new(ClusterConfig {
        program: env!("CARGO_BIN_EXE_chaos").into(),
        logs: Path::new(env!("CARGO_TARGET_TMPDIR")).join("fencing"),
        servers: vec![server.address()],
        namespace: "fencing".into(),
        session: Duration::from_secs(2),
        database: Some(postgres.url()),
        jobs: jobs.to_vec(),
        on_one_host: false,
    })
    .unwrap();
    for _ in 0..2 {
        cluster.start().await.unwrap();
    }
    let observer = cluster.observer().await.unwrap();
    wait_until_quiescent(&*observer, &jobs, 2).await.unwrap();
    let wait_for = |expectation: &'static str, matches: fn(&Execution, &Execution) -> bool| {
        let events = cluster.events().clone();
        async move |lost: &Execution| {
            let lost = lost.clone();
            events
                .until(expectation, |events| {
                    let mut all = executions(events, &mut Vec::new()).into_values();
                    all.find(|execution| matches(execution, &lost))
                })
                .await
        }
    };
    let written = cluster.events().until("worker 0 has written", |events| {
        let mut all = executions(events, &mut Vec::new()).into_values();
        all.find(|one| one.worker == 0 && one.outcome.is_none() && one.writes.len() == 3)
    });
    let lost = written.await;
    let taken_over = wait_for("another worker has completed the shard", |one, lost| {
        one.key.item == lost.key.item
            && one.key.token > lost.key.token
            && one.outcome.as_deref() == Some("done")
    });
    let ended = wait_for("the execution of the thawed worker has ended", |one, lost| {
        one.key == lost.key && one.outcome.is_some()
    });

    cluster.process(0).unwrap().freeze().unwrap();
    let successor = taken_over(&lost).await;
    let item = lost.key.item.cast_signed();
    let settled = database.settlement("settle", item).await.unwrap();
    cluster.process(0).unwrap().thaw().unwrap();
    let ended = ended(&lost).await;

    assert_eq!(ended.outcome.as_deref(), Some("fenced"));
    let refused = ended.writes.iter().filter(|(_, accepted)| !accepted).count();
    assert!(refused > 0, "inconclusive: the thawed worker made no write");
    assert!(ended.writes.iter().all(|(at, accepted)| !accepted || *at < successor.started_at));
    let write_log = database.write_log().await.unwrap();
    let of_shard =
        write_log.iter().filter(|write| write.item == item && write.token <= successor.key.token);
    let accepted = of_shard.filter(|write| write.amount.is_some()).count() as i64;
    assert_eq!(settled, (accepted, successor.key.token), "the thawed worker changed nothing");
    for worker in 0..2 {
        assert!(cluster.stop(worker).await.unwrap().success());
    }
}
