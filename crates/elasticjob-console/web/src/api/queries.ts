import { keepPreviousData, useQuery } from "@tanstack/react-query";

import { ask, exchange, query, segment } from "./client";
import type {
  Account,
  AuditPage,
  Configuration,
  CronChecked,
  Current,
  DoctorFinding,
  Explanation,
  Forecast,
  InstanceRow,
  JobDetails,
  JobsPage,
  Overview,
  Page,
  Registry,
  ServerDetails,
  ServerRow,
  Shard,
  Token,
} from "./types";

/** Where things are kept in the cache; everything of a registry begins with it. */
export const keys = {
  registries: ["registries"] as const,
  of: (registry: string) => ["r", registry] as const,
  overview: (registry: string) => ["r", registry, "overview"] as const,
  jobs: (registry: string) => ["r", registry, "jobs"] as const,
  job: (registry: string, job: string) => ["r", registry, "job", job] as const,
  shards: (registry: string, job: string) => ["r", registry, "shards", job] as const,
  runs: (registry: string) => ["r", registry, "runs"] as const,
  run: (registry: string, runId: string) => ["r", registry, "run", runId] as const,
  servers: (registry: string) => ["r", registry, "servers"] as const,
  instances: (registry: string) => ["r", registry, "instances"] as const,
  accounts: ["accounts"] as const,
  tokens: ["tokens"] as const,
  audit: ["audit"] as const,
};

export const atRegistry = (registry: string) => `/r/${segment(registry)}`;
export const atJob = (registry: string, job: string) =>
  `${atRegistry(registry)}/jobs/${segment(job)}`;
export const atServer = (registry: string, server: string) =>
  `${atRegistry(registry)}/servers/${segment(server)}`;

export interface JobsAsked {
  search?: string;
  status?: string;
  sort?: string;
  order?: string;
  page?: number;
  pageSize?: number;
}

export const useRegistries = () =>
  useQuery({
    queryKey: keys.registries,
    queryFn: () => ask<Registry[]>("GET", "/registries"),
    refetchInterval: 15_000,
  });

export const useOverview = (registry: string, hours: number) =>
  useQuery({
    queryKey: [...keys.overview(registry), hours],
    queryFn: () => ask<Overview>("GET", `${atRegistry(registry)}/overview${query({ hours })}`),
    placeholderData: keepPreviousData,
    refetchInterval: 5_000,
  });

export const fetchJobs = (registry: string, asked: JobsAsked) =>
  ask<JobsPage>("GET", `${atRegistry(registry)}/jobs${query({ ...asked })}`);

export const useJobs = (registry: string, asked: JobsAsked) =>
  useQuery({
    queryKey: [...keys.jobs(registry), asked],
    queryFn: () => fetchJobs(registry, asked),
    placeholderData: keepPreviousData,
    refetchInterval: 15_000,
  });

export const useJob = (registry: string, job: string) =>
  useQuery({
    queryKey: keys.job(registry, job),
    queryFn: () => ask<JobDetails>("GET", atJob(registry, job)),
    refetchInterval: 10_000,
  });

export const useShards = (registry: string, job: string) =>
  useQuery({
    queryKey: keys.shards(registry, job),
    queryFn: () => ask<Shard[]>("GET", `${atJob(registry, job)}/shards`),
    refetchInterval: 10_000,
  });

export interface Versioned extends Configuration {
  etag: string;
}

/** A configuration that somebody edits: it does not change under their hands. */
export const useConfig = (registry: string, job: string) =>
  useQuery({
    queryKey: [...keys.job(registry, job), "config"],
    queryFn: async (): Promise<Versioned> => {
      const { data, etag } = await exchange<Configuration>("GET", `${atJob(registry, job)}/config`);
      return { ...data, etag: etag ?? `"${data.version}"` };
    },
    staleTime: 0,
    refetchOnWindowFocus: false,
  });

export const useFires = (registry: string, job: string, count: number, isKnown: boolean) =>
  useQuery({
    queryKey: [...keys.job(registry, job), "fires", count],
    queryFn: () => ask<string[]>("GET", `${atJob(registry, job)}/fires${query({ count })}`),
    enabled: isKnown,
  });

export const useExplain = (registry: string, job: string, shard?: number, at?: string) =>
  useQuery({
    queryKey: [...keys.job(registry, job), "explain", shard ?? null, at ?? null],
    queryFn: () =>
      ask<Explanation>("GET", `${atJob(registry, job)}/explain${query({ shard, at })}`),
    refetchInterval: at ? false : 5_000,
    placeholderData: keepPreviousData,
  });

export const useServers = (registry: string, search: string, page: number) =>
  useQuery({
    queryKey: [...keys.servers(registry), search, page],
    queryFn: () =>
      ask<Page<ServerRow> & Current>(
        "GET",
        `${atRegistry(registry)}/servers${query({ search, page, pageSize: 50 })}`,
      ),
    placeholderData: keepPreviousData,
    refetchInterval: 10_000,
  });

export const useServer = (registry: string, server: string) =>
  useQuery({
    queryKey: [...keys.servers(registry), "one", server],
    queryFn: () => ask<ServerDetails>("GET", atServer(registry, server)),
    refetchInterval: 10_000,
  });

export const useInstances = (registry: string, search: string, page: number) =>
  useQuery({
    queryKey: [...keys.instances(registry), search, page],
    queryFn: () =>
      ask<Page<InstanceRow> & Current>(
        "GET",
        `${atRegistry(registry)}/instances${query({ search, page, pageSize: 50 })}`,
      ),
    placeholderData: keepPreviousData,
    refetchInterval: 10_000,
  });

export const useDoctor = (registry: string) =>
  useQuery({
    queryKey: [...keys.of(registry), "doctor"],
    queryFn: () => ask<DoctorFinding[]>("GET", `${atRegistry(registry)}/doctor`),
    refetchOnWindowFocus: false,
  });

export const useCronCheck = (expression: string) =>
  useQuery({
    queryKey: ["cron", "check", expression],
    queryFn: () => ask<CronChecked>("GET", `/cron/check${query({ expression })}`),
    enabled: expression.trim() !== "",
    retry: false,
    placeholderData: keepPreviousData,
  });

export const useCronNext = (expression: string, zone: string, count: number, dst = "") =>
  useQuery({
    queryKey: ["cron", "next", expression, zone, count, dst],
    queryFn: () => ask<string[]>("GET", `/cron/next${query({ expression, zone, count, dst })}`),
    enabled: expression.trim() !== "",
    retry: false,
    placeholderData: keepPreviousData,
  });

export const useAccounts = () =>
  useQuery({ queryKey: keys.accounts, queryFn: () => ask<Account[]>("GET", "/accounts") });

export const useTokens = () =>
  useQuery({ queryKey: keys.tokens, queryFn: () => ask<Token[]>("GET", "/tokens") });

export interface AuditAsked {
  registry?: string;
  username?: string;
  action?: string;
  target?: string;
  page?: number;
}

export const useAudit = (asked: AuditAsked) =>
  useQuery({
    queryKey: [...keys.audit, asked],
    queryFn: () => ask<AuditPage>("GET", `/audit${query({ ...asked, pageSize: 50 })}`),
    placeholderData: keepPreviousData,
    refetchInterval: 10_000,
  });

export const useForecast = (registry: string, hours: number, buckets: number) =>
  useQuery({
    queryKey: [...keys.of(registry), "forecast", hours, buckets],
    queryFn: () =>
      ask<Forecast>("GET", `${atRegistry(registry)}/forecast${query({ hours, buckets })}`),
    placeholderData: keepPreviousData,
    staleTime: 30_000,
    refetchInterval: 60_000,
  });
