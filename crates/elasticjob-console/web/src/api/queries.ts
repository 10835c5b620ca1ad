import { keepPreviousData, useQuery } from "@tanstack/react-query";

import { encodeSegment, queryString, request, requestWithEtag } from "./client";
import type {
  Account,
  AuditPage,
  Configuration,
  CronCheck,
  DoctorFinding,
  Explanation,
  Forecast,
  InstancesPage,
  JobDetails,
  JobsPage,
  Overview,
  Registry,
  ServerDetails,
  ServersPage,
  ShardsPage,
  Token,
  TriggerDetails,
  TriggerList,
} from "./types";

/** Cache keys. Those of a registry share a prefix, so that they can be invalidated together. */
export const queryKeys = {
  registries: ["registries"] as const,
  of: (registry: string) => ["r", registry] as const,
  overview: (registry: string) => ["r", registry, "overview"] as const,
  jobs: (registry: string) => ["r", registry, "jobs"] as const,
  job: (registry: string, job: string) => ["r", registry, "job", job] as const,
  shards: (registry: string, job: string) => ["r", registry, "shards", job] as const,
  triggers: (registry: string, job: string) => ["r", registry, "triggers", job] as const,
  runs: (registry: string) => ["r", registry, "runs"] as const,
  run: (registry: string, runId: string) => ["r", registry, "run", runId] as const,
  servers: (registry: string) => ["r", registry, "servers"] as const,
  instances: (registry: string) => ["r", registry, "instances"] as const,
  accounts: ["accounts"] as const,
  tokens: ["tokens"] as const,
  audit: ["audit"] as const,
};

export const registryPath = (registry: string) => `/r/${encodeSegment(registry)}`;
export const jobPath = (registry: string, job: string) =>
  `${registryPath(registry)}/jobs/${encodeSegment(job)}`;
export const serverPath = (registry: string, server: string) =>
  `${registryPath(registry)}/servers/${encodeSegment(server)}`;

export interface JobsQuery {
  search?: string;
  status?: string;
  sort?: string;
  order?: string;
  page?: number;
  pageSize?: number;
}

export const useRegistries = () =>
  useQuery({
    queryKey: queryKeys.registries,
    queryFn: () => request<Registry[]>("GET", "/registries"),
    refetchInterval: 15_000,
  });

export const useOverview = (registry: string, hours: number) =>
  useQuery({
    queryKey: [...queryKeys.overview(registry), hours],
    queryFn: () =>
      request<Overview>("GET", `${registryPath(registry)}/overview${queryString({ hours })}`),
    placeholderData: keepPreviousData,
    refetchInterval: 5_000,
  });

export const fetchJobs = (registry: string, query: JobsQuery) =>
  request<JobsPage>("GET", `${registryPath(registry)}/jobs${queryString({ ...query })}`);

export const useJobs = (registry: string, query: JobsQuery) =>
  useQuery({
    queryKey: [...queryKeys.jobs(registry), query],
    queryFn: () => fetchJobs(registry, query),
    placeholderData: keepPreviousData,
    refetchInterval: 15_000,
  });

export const useJob = (registry: string, job: string) =>
  useQuery({
    queryKey: queryKeys.job(registry, job),
    queryFn: () => request<JobDetails>("GET", jobPath(registry, job)),
    refetchInterval: 10_000,
  });

/** Shards on one page. */
export const SHARDS_PER_PAGE = 500;

export const useShards = (registry: string, job: string, page: number) =>
  useQuery({
    queryKey: [...queryKeys.shards(registry, job), page],
    queryFn: () => {
      const query = queryString({ page, pageSize: SHARDS_PER_PAGE });
      return request<ShardsPage>("GET", `${jobPath(registry, job)}/shards${query}`);
    },
    placeholderData: keepPreviousData,
    refetchInterval: 10_000,
  });

const triggersPath = (registry: string, job: string) => `${jobPath(registry, job)}/triggers`;

/** A stored trigger. */
export const triggerPath = (registry: string, job: string, runId: string) =>
  `${triggersPath(registry, job)}/${encodeSegment(runId)}`;

/** Stored triggers on the job page. Those that have not ended come first. */
const MAX_TRIGGERS = 20;

export const useTriggers = (registry: string, job: string) =>
  useQuery({
    queryKey: queryKeys.triggers(registry, job),
    queryFn: () => {
      const query = queryString({ limit: MAX_TRIGGERS });
      return request<TriggerList>("GET", `${triggersPath(registry, job)}${query}`);
    },
    placeholderData: keepPreviousData,
    refetchInterval: 5_000,
  });

/** A trigger is stored for a day; `isKnown` is false for runs that were not triggered. */
export const useTrigger = (registry: string, job: string, runId: string, isKnown = true) =>
  useQuery({
    queryKey: [...queryKeys.triggers(registry, job), runId],
    queryFn: () => request<TriggerDetails>("GET", triggerPath(registry, job, runId)),
    enabled: isKnown,
    retry: false,
    refetchInterval: ({ state }) => {
      const isOver = state.error !== null || state.data?.state === "ended";
      return isOver ? false : 2_000;
    },
  });

export interface VersionedConfiguration extends Configuration {
  etag: string;
}

/** The configuration to edit. It is not refetched on focus, so that it does not change while the user types. */
export const useConfig = (registry: string, job: string) =>
  useQuery({
    queryKey: [...queryKeys.job(registry, job), "config"],
    queryFn: async (): Promise<VersionedConfiguration> => {
      const { data, etag } = await requestWithEtag<Configuration>(
        "GET",
        `${jobPath(registry, job)}/config`,
      );
      return { ...data, etag: etag ?? `"${data.version}"` };
    },
    staleTime: 0,
    refetchOnWindowFocus: false,
  });

export const useFires = (registry: string, job: string, count: number, isKnown: boolean) =>
  useQuery({
    queryKey: [...queryKeys.job(registry, job), "fires", count],
    queryFn: () =>
      request<string[]>("GET", `${jobPath(registry, job)}/fires${queryString({ count })}`),
    enabled: isKnown,
  });

export const useExplain = (registry: string, job: string, shard?: number, at?: string) =>
  useQuery({
    queryKey: [...queryKeys.job(registry, job), "explain", shard ?? null, at ?? null],
    queryFn: () =>
      request<Explanation>("GET", `${jobPath(registry, job)}/explain${queryString({ shard, at })}`),
    refetchInterval: at ? false : 5_000,
    placeholderData: keepPreviousData,
  });

export const useServers = (registry: string, search: string, page: number) =>
  useQuery({
    queryKey: [...queryKeys.servers(registry), search, page],
    queryFn: () =>
      request<ServersPage>(
        "GET",
        `${registryPath(registry)}/servers${queryString({ search, page, pageSize: 50 })}`,
      ),
    placeholderData: keepPreviousData,
    refetchInterval: 10_000,
  });

export const useServer = (registry: string, server: string) =>
  useQuery({
    queryKey: [...queryKeys.servers(registry), "one", server],
    queryFn: () => request<ServerDetails>("GET", serverPath(registry, server)),
    refetchInterval: 10_000,
  });

export const useInstances = (registry: string, search: string, page: number) =>
  useQuery({
    queryKey: [...queryKeys.instances(registry), search, page],
    queryFn: () =>
      request<InstancesPage>(
        "GET",
        `${registryPath(registry)}/instances${queryString({ search, page, pageSize: 50 })}`,
      ),
    placeholderData: keepPreviousData,
    refetchInterval: 10_000,
  });

export const useDoctor = (registry: string) =>
  useQuery({
    queryKey: [...queryKeys.of(registry), "doctor"],
    queryFn: () => request<DoctorFinding[]>("GET", `${registryPath(registry)}/doctor`),
    refetchOnWindowFocus: false,
  });

export const useCronCheck = (expression: string) =>
  useQuery({
    queryKey: ["cron", "check", expression],
    queryFn: () => request<CronCheck>("GET", `/cron/check${queryString({ expression })}`),
    enabled: expression.trim() !== "",
    retry: false,
    placeholderData: keepPreviousData,
  });

export const useCronNext = (expression: string, zone: string, count: number, dst = "") =>
  useQuery({
    queryKey: ["cron", "next", expression, zone, count, dst],
    queryFn: () =>
      request<string[]>("GET", `/cron/next${queryString({ expression, zone, count, dst })}`),
    enabled: expression.trim() !== "",
    retry: false,
    placeholderData: keepPreviousData,
  });

export const useAccounts = () =>
  useQuery({ queryKey: queryKeys.accounts, queryFn: () => request<Account[]>("GET", "/accounts") });

export const useTokens = () =>
  useQuery({ queryKey: queryKeys.tokens, queryFn: () => request<Token[]>("GET", "/tokens") });

export interface AuditQuery {
  registry?: string;
  username?: string;
  action?: string;
  target?: string;
  page?: number;
}

export const useAudit = (query: AuditQuery) =>
  useQuery({
    queryKey: [...queryKeys.audit, query],
    queryFn: () => request<AuditPage>("GET", `/audit${queryString({ ...query, pageSize: 50 })}`),
    placeholderData: keepPreviousData,
    refetchInterval: 10_000,
  });

export const useForecast = (registry: string, hours: number, buckets: number) =>
  useQuery({
    queryKey: [...queryKeys.of(registry), "forecast", hours, buckets],
    queryFn: () =>
      request<Forecast>(
        "GET",
        `${registryPath(registry)}/forecast${queryString({ hours, buckets })}`,
      ),
    placeholderData: keepPreviousData,
    staleTime: 30_000,
    refetchInterval: 60_000,
  });
