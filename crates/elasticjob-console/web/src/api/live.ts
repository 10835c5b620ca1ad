import { type QueryClient, useQueryClient } from "@tanstack/react-query";
import { useEffect, useState } from "react";

import { openStream } from "./eventStream";
import { historyKeys, mergeRuns } from "./history";
import { queryKeys, registryPath } from "./queries";
import { throttle } from "./throttle";
import type { JobFigures, JobRow, JobsPage, Run } from "./types";

export type ConnectionState = "connecting" | "live" | "registryDown" | "lost";

/** Changes are collected for this long (ms) before the page is updated. */
const FLUSH_DELAY = 250;
/** Minimum intervals (ms) between refetches of data that the server computes: counts, lists, success rates. */
const COUNTS_INTERVAL = 2_000;
const LISTS_INTERVAL = 5_000;
const RATES_INTERVAL = 30_000;

/** The event `shards`: which shards of a job run or await failover. */
interface ShardActivity {
  jobName: string;
  runningItems: number[];
  awaitingFailoverItems: number[];
}

/** Keeps the cached data of a registry up to date with the server's events. */
export function useLive(registry: string): ConnectionState {
  const client = useQueryClient();
  const [connection, setConnection] = useState<ConnectionState>("connecting");
  useEffect(() => {
    const end = subscribe(client, registry, setConnection);
    return () => {
      end();
      setConnection("connecting");
    };
  }, [client, registry]);
  return connection;
}

/** Applies the events of a registry to the cache. Returns a function that ends the subscription. */
export function subscribe(
  client: QueryClient,
  registry: string,
  setConnection: (connection: ConnectionState) => void,
): () => void {
  const changes = new ChangeBuffer(client, registry);
  let wasOpen = false;
  let wasInterrupted = false;
  const end = openStream(`${registryPath(registry)}/events`, {
    onEvent: {
      connection: (data) => {
        const { isConnected } = data as { isConnected: boolean };
        setConnection(isConnected ? "live" : "registryDown");
        // Missed events are not replayed, so everything is refetched after an interruption.
        if (wasInterrupted) changes.reload();
        wasInterrupted = !isConnected;
      },
      job: (data) => changes.job(data as { jobName: string; job: JobRow | null }),
      shards: (data) => changes.shards(data as ShardActivity),
      run: (data) => changes.run(data as Run),
      reload: () => changes.reload(),
    },
    onOpen: () => {
      wasInterrupted ||= wasOpen;
      wasOpen = true;
    },
    onLost: () => setConnection("lost"),
  });
  return () => {
    end();
    changes.close();
  };
}

class ChangeBuffer {
  private rows = new Map<string, JobRow | null>();
  private activities = new Map<string, ShardActivity>();
  private runs = new Map<string, Run>();
  private timer: ReturnType<typeof setTimeout> | undefined;
  private isStale = false;
  /** The server computes counts and sort order, so they are refetched. */
  private lists = throttle(COUNTS_INTERVAL, () => {
    this.refetch(queryKeys.overview(this.registry));
    if (this.isStale) this.refetch(queryKeys.jobs(this.registry));
    this.isStale = false;
  });
  /** Shard counts in a row that events do not carry, and the rows that match a search. */
  private badges = throttle(LISTS_INTERVAL, () => this.refetch(queryKeys.jobs(this.registry)));
  /** A busy registry sends `reload` every second. The doctor writes to the registry, so only a user may start it. */
  private everything = throttle(LISTS_INTERVAL, () => {
    void this.client.invalidateQueries({
      queryKey: queryKeys.of(this.registry),
      predicate: ({ queryKey }) => queryKey[2] !== "doctor",
    });
  });
  private runList = throttle(COUNTS_INTERVAL, () => this.refetch(queryKeys.runs(this.registry)));
  /** The success rate of a week changes slowly. */
  private rates = throttle(RATES_INTERVAL, () => this.refetch(historyKeys.figures(this.registry)));
  private charts = throttle(COUNTS_INTERVAL, () =>
    this.refetch(historyKeys.buckets(this.registry)),
  );

  constructor(
    private client: QueryClient,
    private registry: string,
  ) {}

  job({ jobName, job }: { jobName: string; job: JobRow | null }) {
    this.rows.set(jobName, job);
    this.scheduleFlush();
  }

  shards(activity: ShardActivity) {
    this.activities.set(activity.jobName, activity);
    this.scheduleFlush();
  }

  run(run: Run) {
    this.runs.set(run.runId, run);
    this.scheduleFlush();
  }

  reload() {
    this.everything.schedule();
  }

  close() {
    clearTimeout(this.timer);
    const { lists, badges, everything, runList, rates, charts } = this;
    for (const throttled of [lists, badges, everything, runList, rates, charts]) throttled.cancel();
  }

  private scheduleFlush() {
    this.timer ??= setTimeout(() => {
      this.timer = undefined;
      this.flush();
    }, FLUSH_DELAY);
  }

  private flush() {
    const { client, registry, rows, activities, runs } = this;
    this.rows = new Map();
    this.activities = new Map();
    this.runs = new Map();
    if (runs.size > 0) this.flushRuns([...runs.values()]);
    if (rows.size === 0 && activities.size === 0) return;
    client.setQueriesData<JobsPage>({ queryKey: queryKeys.jobs(registry) }, (page) => {
      if (!page) return page;
      const next = mergeRows(page, rows);
      this.isStale ||= next.isStale;
      return mergeActivity(next.page, activities);
    });
    // Thousands of jobs may have changed while one is shown, so this walks the cached queries once instead of the changes.
    const [, , shards] = queryKeys.shards(registry, "");
    const [, , job] = queryKeys.job(registry, "");
    void client.invalidateQueries({
      queryKey: queryKeys.of(registry),
      predicate: ({ queryKey: [, , kind, name, ...more] }) =>
        (kind === shards && (rows.has(String(name)) || activities.has(String(name)))) ||
        (kind === job && rows.has(String(name)) && more.length === 0),
    });
    if (activities.size > 0) this.badges.schedule();
    this.lists.schedule();
  }

  /** Inserts runs into the cached lists and refetches what the server computes from them. */
  private flushRuns(runs: Run[]) {
    const { client, registry } = this;
    client.setQueriesData<JobFigures[]>({ queryKey: historyKeys.figures(registry) }, (figures) =>
      figures ? mergeRuns(figures, runs) : figures,
    );
    for (const job of new Set(runs.map((run) => run.jobName))) {
      this.refetch(historyKeys.job(registry, job));
    }
    for (const { runId } of runs) this.refetch(queryKeys.run(registry, runId));
    this.runList.schedule();
    this.rates.schedule();
    this.charts.schedule();
    this.lists.schedule();
  }

  /** Refetches active queries without cancelling a request that is in flight. */
  private refetch(queryKey: readonly unknown[]) {
    void this.client.invalidateQueries({ queryKey }, { cancelRefetch: false });
  }
}

/** Replaces changed rows. The page is stale if the change may affect which rows it holds. */
export function mergeRows(
  page: JobsPage,
  rows: ReadonlyMap<string, JobRow | null>,
): { page: JobsPage; isStale: boolean } {
  const known = new Set(page.items.map((row) => row.jobName));
  let isStale = false;
  for (const [name, row] of rows) {
    const before = page.items.find((each) => each.jobName === name);
    if (!known.has(name) || row === null || before?.status !== row.status) isStale = true;
  }
  if (![...rows.keys()].some((name) => known.has(name))) return { page, isStale };
  const items = page.items.flatMap((row) => {
    const changed = rows.get(row.jobName);
    if (changed === undefined) return [row];
    return changed === null ? [] : [changed];
  });
  return { page: { ...page, items }, isStale };
}

/** Updates the counts of running shards and of shards that await failover. */
export function mergeActivity(
  page: JobsPage,
  activities: ReadonlyMap<string, ShardActivity>,
): JobsPage {
  if (!page.items.some((row) => activities.has(row.jobName))) return page;
  const items = page.items.map((row) => {
    const activity = activities.get(row.jobName);
    if (!activity) return row;
    return {
      ...row,
      runningCount: activity.runningItems.length,
      awaitingFailoverCount: activity.awaitingFailoverItems.length,
    };
  });
  return { ...page, items };
}
