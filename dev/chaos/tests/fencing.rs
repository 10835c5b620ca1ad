//! The recipe of `docs/fencing.md`, on a real PostgreSQL.

use std::{path::Path, time::Duration};

use chaos::{Cluster, Database, Execution, Plan, TABLE, Task, WRITE, executions, settles};
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
fn the_page_says_what_the_workers_do() {
    let plain = |statement: &str| statement.lines().map(str::trim).collect::<Vec<_>>().join(" ");

    assert_eq!(statements()[..2], [plain(TABLE), plain(WRITE)]);
}

#[tokio::test]
#[ignore = "needs a real PostgreSQL: make test"]
async fn an_older_token_changes_and_inserts_nothing() {
    let postgres = Postgres::start();
    let (client, connection) = tokio_postgres::connect(&postgres.url(), NoTls).await.unwrap();
    let mut line = JoinSet::new();
    line.spawn(connection);
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

    // What wrote 9 first is newer than all that inserted after it, but for 9 itself.
    assert_eq!(changed, [1, 1, 1, 0, 0, 0, 1, 0]);
    let settled = client.query_one("SELECT amount, token FROM settlement", &[]).await.unwrap();
    assert_eq!((settled.get::<_, i64>(0), settled.get::<_, i64>(1)), (3, 9));
    let paid = client.query("SELECT token FROM payment", &[]).await.unwrap();
    assert_eq!(paid.iter().map(|row| row.get::<_, i64>(0)).collect::<Vec<_>>(), [9]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a real ZooKeeper and a real PostgreSQL: make test"]
async fn every_write_of_a_worker_that_was_thawed_after_another_took_over_is_refused() {
    let (server, postgres) =
        tokio::task::block_in_place(|| (ZooKeeper::start(), Postgres::start()));
    let task = Task::new("settle", "0/8 * * * * ?", 2, 8, Duration::from_millis(300)).stubborn();
    let tasks = [task];
    let database = Database::connect(&postgres.url()).await.unwrap();
    database.prepare(&tasks).await.unwrap();
    let mut cluster = Cluster::new(Plan {
        program: env!("CARGO_BIN_EXE_chaos").into(),
        logs: Path::new(env!("CARGO_TARGET_TMPDIR")).join("fencing"),
        servers: vec![server.address()],
        namespace: "fencing".into(),
        session: Duration::from_secs(2),
        database: Some(postgres.url()),
        tasks: tasks.to_vec(),
        on_one_host: false,
    })
    .unwrap();
    for _ in 0..2 {
        cluster.start().await.unwrap();
    }
    let observer = cluster.observer().await.unwrap();
    settles(&*observer, &tasks, 2).await.unwrap();
    let execution = |what: &'static str, is_it: fn(&Execution, &Execution) -> bool| {
        let heard = cluster.heard().clone();
        async move |of: &Execution| {
            let of = of.clone();
            heard
                .until(what, |said| {
                    let mut all = executions(said, &mut Vec::new()).into_values();
                    all.find(|execution| is_it(execution, &of))
                })
                .await
        }
    };
    let written = cluster.heard().until("worker 0 has written", |said| {
        let mut all = executions(said, &mut Vec::new()).into_values();
        all.find(|one| one.worker == 0 && one.outcome.is_none() && one.writes.len() == 3)
    });
    let lost = written.await;
    let done_by_heir = execution("another one has done it", |one, lost| {
        one.key.item == lost.key.item
            && one.key.token > lost.key.token
            && one.outcome.as_deref() == Some("done")
    });
    let ended = execution("the thawed one has ended", |one, lost| {
        one.key == lost.key && one.outcome.is_some()
    });

    cluster.process(0).unwrap().freeze().unwrap();
    let heir = done_by_heir(&lost).await;
    let item = lost.key.item.cast_signed();
    let settled = database.settled("settle", item).await.unwrap();
    cluster.process(0).unwrap().thaw().unwrap();
    let ended = ended(&lost).await;

    assert_eq!(ended.outcome.as_deref(), Some("fenced"));
    let refused = ended.writes.iter().filter(|(_, accepted)| !accepted).count();
    assert!(refused > 0, "it did not go on: this shows nothing");
    assert!(ended.writes.iter().all(|(at, accepted)| !accepted || *at < heir.started_at));
    let book = database.book().await.unwrap();
    let of = book.iter().filter(|line| line.item == item && line.token <= heir.key.token);
    let accepted = of.filter(|line| line.amount.is_some()).count() as i64;
    assert_eq!(settled, (accepted, heir.key.token), "as if it had never come back");
    for worker in 0..2 {
        assert!(cluster.stop(worker).await.unwrap().success());
    }
}
