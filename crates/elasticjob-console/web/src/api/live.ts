import { type QueryClient, useQueryClient } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { openStream } from "./eventStream";
import { historyKeys, mergeRuns } from "./history";
import { queryKeys, registryPath } from "./queries";
import { throttle } from "./throttle";
import type { JobFigures, JobRow, JobsPage, Run } from "./types";

export type ConnectionState = "connecting" | "live" | "registryDown" | "lost";

/** How long changes are gathered before the page is drawn anew. */
const FLUSH_DELAY = 250;
/** How long what the server has to count is left alone between two looks. */
const COUNTS_INTERVAL = 2_000;
const LISTS_INTERVAL = 5_000;
const RATES_INTERVAL = 30_000;

/** What goes on in a job, as it is told when that changes. */
interface ShardActivity {
  jobName: string;
  runningItems: number[];
  waitingForFailoverItems: number[];
}

/** Hears what changes in a registry, and keeps what is shown up to date. */
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

/** Puts what is heard of a registry where it is shown, until what it returns is called. */
export function subscribe(
  client: QueryClient,
  registry: string,
  setLine: (line: ConnectionState) => void,
): () => void {
  const heard = new ChangeBuffer(client, registry);
  let wasOpen = false;
  let wasAway = false;
  const end = openStream(`${registryPath(registry)}/events`, {
    onEvent: {
      connection: (data) => {
        const { isConnected } = data as { isConnected: boolean };
        setLine(isConnected ? "live" : "registryDown");
        // There is no replay: what happened in between is looked at again.
        if (wasAway) heard.reload();
        wasAway = !isConnected;
      },
      job: (data) => heard.job(data as { jobName: string; job: JobRow | null }),
      shards: (data) => heard.shards(data as ShardActivity),
      run: (data) => heard.run(data as Run),
      reload: () => heard.reload(),
    },
    onOpen: () => {
      wasAway ||= wasOpen;
      wasOpen = true;
    },
    onLost: () => setLine("lost"),
  });
  return () => {
    end();
    heard.close();
  };
}

class ChangeBuffer {
  private rows = new Map<string, JobRow | null>();
  private activities = new Map<string, ShardActivity>();
  private runs = new Map<string, Run>();
  private timer: ReturnType<typeof setTimeout> | undefined;
  private isStale = false;
  /** Counts and orders are the server's: they are asked for again, not too often. */
  private lists = throttle(COUNTS_INTERVAL, () => {
    this.refetch(queryKeys.overview(this.registry));
    if (this.isStale) this.refetch(queryKeys.jobs(this.registry));
    this.isStale = false;
  });
  /** Whatever else a row shows of its shards, and which rows a search finds. */
  private badges = throttle(LISTS_INTERVAL, () => this.refetch(queryKeys.jobs(this.registry)));
  /** A busy registry says every second that there is too much to tell. The doctor is asked by people alone: it writes. */
  private everything = throttle(LISTS_INTERVAL, () => {
    void this.client.invalidateQueries({
      queryKey: queryKeys.of(this.registry),
      predicate: ({ queryKey }) => queryKey[2] !== "doctor",
    });
  });
  private runList = throttle(COUNTS_INTERVAL, () => this.refetch(queryKeys.runs(this.registry)));
  /** How often a week went well changes slowly. */
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

  shards(bustle: ShardActivity) {
    this.activities.set(bustle.jobName, bustle);
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
    for (const look of [lists, badges, everything, runList, rates, charts]) look.cancel();
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
    // Thousands may have changed of which one is shown: what is shown is looked through, once.
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

  /** A run is put into the lists that show it; what is counted is asked for again. */
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

  /** Asked for again, if it is shown; an answer that is on its way is not thrown away for that. */
  private refetch(queryKey: readonly unknown[]) {
    void this.client.invalidateQueries({ queryKey }, { cancelRefetch: false });
  }
}

/** A page with rows that changed put in; stale if the page might hold other rows now. */
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

/** A page whose rows say how many of their shards run and wait now. */
export function mergeActivity(
  page: JobsPage,
  bustles: ReadonlyMap<string, ShardActivity>,
): JobsPage {
  if (!page.items.some((row) => bustles.has(row.jobName))) return page;
  const items = page.items.map((row) => {
    const bustle = bustles.get(row.jobName);
    if (!bustle) return row;
    return {
      ...row,
      runningCount: bustle.runningItems.length,
      waitingForFailoverCount: bustle.waitingForFailoverItems.length,
    };
  });
  return { ...page, items };
}
