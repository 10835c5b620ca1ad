import { type QueryClient, useQueryClient } from "@tanstack/react-query";
import { useEffect, useState } from "react";

import { type JobFigures, pastKeys, type Run, withRuns } from "./history";
import { paced } from "./paced";
import { atRegistry, keys } from "./queries";
import { listen } from "./stream";
import type { JobRow, JobsPage } from "./types";

export type Line = "connecting" | "live" | "registryDown" | "lost";

/** How long changes are gathered before the page is drawn anew. */
const GATHER = 250;
/** How long what the server has to count is left alone between two looks. */
const COUNTED = 2_000;
const LISTED = 5_000;
const RATED = 30_000;

/** What goes on in a job, as it is told when that changes. */
interface Bustle {
  jobName: string;
  runningItems: number[];
  waitingForFailoverItems: number[];
}

/** Hears what changes in a registry, and keeps what is shown up to date. */
export function useLive(registry: string): Line {
  const client = useQueryClient();
  const [line, setLine] = useState<Line>("connecting");
  useEffect(() => {
    const end = follow(client, registry, setLine);
    return () => {
      end();
      setLine("connecting");
    };
  }, [client, registry]);
  return line;
}

/** Puts what is heard of a registry where it is shown, until what it returns is called. */
export function follow(
  client: QueryClient,
  registry: string,
  setLine: (line: Line) => void,
): () => void {
  const heard = new Gathered(client, registry);
  let wasOpen = false;
  let wasAway = false;
  const end = listen(`${atRegistry(registry)}/events`, {
    on: {
      connection: (data) => {
        const { isConnected } = data as { isConnected: boolean };
        setLine(isConnected ? "live" : "registryDown");
        // There is no replay: what happened in between is looked at again.
        if (wasAway) heard.reload();
        wasAway = !isConnected;
      },
      job: (data) => heard.job(data as { jobName: string; job: JobRow | null }),
      shards: (data) => heard.shards(data as Bustle),
      run: (data) => heard.run(data as Run),
      reload: () => heard.reload(),
    },
    opened: () => {
      wasAway ||= wasOpen;
      wasOpen = true;
    },
    lost: () => setLine("lost"),
  });
  return () => {
    end();
    heard.close();
  };
}

class Gathered {
  private rows = new Map<string, JobRow | null>();
  private bustles = new Map<string, Bustle>();
  private runs = new Map<string, Run>();
  private timer: ReturnType<typeof setTimeout> | undefined;
  private isStale = false;
  /** Counts and orders are the server's: they are asked for again, not too often. */
  private lists = paced(COUNTED, () => {
    this.again(keys.overview(this.registry));
    if (this.isStale) this.again(keys.jobs(this.registry));
    this.isStale = false;
  });
  /** Whatever else a row shows of its shards, and which rows a search finds. */
  private signs = paced(LISTED, () => this.again(keys.jobs(this.registry)));
  /** A busy registry says every second that there is too much to tell. The doctor is asked by people alone: it writes. */
  private everything = paced(LISTED, () => {
    void this.client.invalidateQueries({
      queryKey: keys.of(this.registry),
      predicate: ({ queryKey }) => queryKey[2] !== "doctor",
    });
  });
  private runList = paced(COUNTED, () => this.again(keys.runs(this.registry)));
  /** How often a week went well changes slowly. */
  private rates = paced(RATED, () => this.again(pastKeys.figures(this.registry)));
  private charts = paced(COUNTED, () => this.again(pastKeys.buckets(this.registry)));

  constructor(
    private client: QueryClient,
    private registry: string,
  ) {}

  job({ jobName, job }: { jobName: string; job: JobRow | null }) {
    this.rows.set(jobName, job);
    this.later();
  }

  shards(bustle: Bustle) {
    this.bustles.set(bustle.jobName, bustle);
    this.later();
  }

  run(run: Run) {
    this.runs.set(run.runId, run);
    this.later();
  }

  reload() {
    this.everything.soon();
  }

  close() {
    clearTimeout(this.timer);
    const { lists, signs, everything, runList, rates, charts } = this;
    for (const look of [lists, signs, everything, runList, rates, charts]) look.stop();
  }

  private later() {
    this.timer ??= setTimeout(() => {
      this.timer = undefined;
      this.flush();
    }, GATHER);
  }

  private flush() {
    const { client, registry, rows, bustles, runs } = this;
    this.rows = new Map();
    this.bustles = new Map();
    this.runs = new Map();
    if (runs.size > 0) this.flushRuns([...runs.values()]);
    if (rows.size === 0 && bustles.size === 0) return;
    client.setQueriesData<JobsPage>({ queryKey: keys.jobs(registry) }, (page) => {
      if (!page) return page;
      const next = withRows(page, rows);
      this.isStale ||= next.isStale;
      return withBustle(next.page, bustles);
    });
    // Thousands may have changed of which one is shown: what is shown is looked through, once.
    const [, , shards] = keys.shards(registry, "");
    const [, , job] = keys.job(registry, "");
    void client.invalidateQueries({
      queryKey: keys.of(registry),
      predicate: ({ queryKey: [, , kind, name, ...more] }) =>
        (kind === shards && (rows.has(String(name)) || bustles.has(String(name)))) ||
        (kind === job && rows.has(String(name)) && more.length === 0),
    });
    if (bustles.size > 0) this.signs.soon();
    this.lists.soon();
  }

  /** A run is put into the lists that show it; what is counted is asked for again. */
  private flushRuns(runs: Run[]) {
    const { client, registry } = this;
    client.setQueriesData<JobFigures[]>({ queryKey: pastKeys.figures(registry) }, (figures) =>
      figures ? withRuns(figures, runs) : figures,
    );
    for (const job of new Set(runs.map((run) => run.jobName))) {
      this.again(pastKeys.job(registry, job));
    }
    for (const { runId } of runs) this.again(keys.run(registry, runId));
    this.runList.soon();
    this.rates.soon();
    this.charts.soon();
    this.lists.soon();
  }

  /** Asked for again, if it is shown; an answer that is on its way is not thrown away for that. */
  private again(queryKey: readonly unknown[]) {
    void this.client.invalidateQueries({ queryKey }, { cancelRefetch: false });
  }
}

/** A page with rows that changed put in; stale if the page might hold other rows now. */
export function withRows(
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
export function withBustle(page: JobsPage, bustles: ReadonlyMap<string, Bustle>): JobsPage {
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
