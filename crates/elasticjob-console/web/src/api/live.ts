import { useQueryClient, type QueryClient } from "@tanstack/react-query";
import { useEffect, useState } from "react";

import { atRegistry, keys } from "./queries";
import { listen } from "./stream";
import type { JobRow, JobsPage } from "./types";

export type Line = "connecting" | "live" | "registryDown" | "lost";

/** How long changes are gathered before the page is drawn anew. */
const GATHER = 250;

/** Hears what changes in a registry, and keeps what is shown up to date. */
export function useLive(registry: string): Line {
  const client = useQueryClient();
  const [line, setLine] = useState<Line>("connecting");

  useEffect(() => {
    const heard = new Gathered(client, registry);
    let wasLost = false;
    const end = listen(`${atRegistry(registry)}/events`, {
      on: {
        connection: (data) => {
          const { isConnected } = data as { isConnected: boolean };
          setLine(isConnected ? "live" : "registryDown");
          // There is no replay: what happened in between is looked at again.
          if (wasLost) heard.reload();
          wasLost = !isConnected;
        },
        job: (data) => heard.job(data as { jobName: string; job: JobRow | null }),
        shards: (data) => heard.shards(data as { jobName: string }),
        run: (data) => heard.run(data as { runId: string }),
        reload: () => heard.reload(),
      },
      lost: () => {
        wasLost = true;
        setLine("lost");
      },
    });
    return () => {
      end();
      heard.close();
      setLine("connecting");
    };
  }, [client, registry]);

  return line;
}

class Gathered {
  private rows = new Map<string, JobRow | null>();
  private jobs = new Set<string>();
  private runs = new Set<string>();
  private timer: ReturnType<typeof setTimeout> | undefined;
  private everything = false;
  private listsLookedAt = 0;

  constructor(
    private client: QueryClient,
    private registry: string,
  ) {}

  job({ jobName, job }: { jobName: string; job: JobRow | null }) {
    this.rows.set(jobName, job);
    this.later();
  }

  shards({ jobName }: { jobName: string }) {
    this.jobs.add(jobName);
    this.later();
  }

  run({ runId }: { runId: string }) {
    this.runs.add(runId);
    this.later();
  }

  reload() {
    this.everything = true;
    this.later();
  }

  close() {
    clearTimeout(this.timer);
  }

  private later() {
    this.timer ??= setTimeout(() => {
      this.timer = undefined;
      this.flush();
    }, GATHER);
  }

  private flush() {
    const { client, registry, rows, jobs, runs } = this;
    this.rows = new Map();
    this.jobs = new Set();
    this.runs = new Set();
    if (this.everything) {
      this.everything = false;
      void client.invalidateQueries({ queryKey: keys.of(registry) });
      return;
    }
    let isStale = false;
    client.setQueriesData<JobsPage>({ queryKey: keys.jobs(registry) }, (page) => {
      if (!page) return page;
      const next = withRows(page, rows);
      isStale ||= next.isStale;
      return next.page;
    });
    for (const name of new Set([...rows.keys(), ...jobs])) {
      void client.invalidateQueries({ queryKey: keys.shards(registry, name) });
    }
    for (const name of rows.keys()) {
      void client.invalidateQueries({ queryKey: keys.job(registry, name), exact: true });
    }
    for (const runId of runs) {
      void client.invalidateQueries({ queryKey: keys.run(registry, runId) });
    }
    if (runs.size > 0) void client.invalidateQueries({ queryKey: keys.runs(registry) });
    if (rows.size > 0 || jobs.size > 0) this.lists(isStale);
  }

  /** Counts and orders are the server's: they are asked for again, at most every two seconds. */
  private lists(isStale: boolean) {
    const now = Date.now();
    if (now - this.listsLookedAt < 2_000) return;
    this.listsLookedAt = now;
    const { client, registry } = this;
    void client.invalidateQueries({ queryKey: keys.overview(registry) });
    if (isStale) void client.invalidateQueries({ queryKey: keys.jobs(registry) });
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
