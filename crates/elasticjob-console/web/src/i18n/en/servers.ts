import { plural } from "./texts";

/** English: servers and instances. */
export const servers = {
  servers: {
    about: "Addresses that instances run on.",
    search: "Search servers",
    none: "No servers",
    noneAbout: "A server appears here when an instance on it joins.",
    address: "Address",
    status: "Status",
    instances: "Instances",
    jobs: "Jobs",
    disabledJobs: (count: number) => `${count} disabled`,
    summary: (instances: number, jobs: number) =>
      `${plural(instances, "instance")}, ${plural(jobs, "job")}`,
    isUp: "up",
    isEmpty: "no instance",
    isDisabled: "disabled",
    isPartly: "partly disabled",
    statuses: { ENABLED: "enabled", DISABLED: "disabled" },
    actionsOf: (name: string) => `Actions for ${name}`,
    jobOn: (job: string, server: string) => `${job} on ${server}`,
    actions: { enable: "Enable", disable: "Disable", shutdown: "Shut down", remove: "Remove" },
    removeWhenEmpty: "Remove (needs no instances)",
    titles: {
      disable: (what: string) => `Disable ${what}?`,
      shutdown: (what: string) => `Shut ${what} down?`,
      remove: (what: string) => `Remove ${what}?`,
    },
    consequences: {
      disable: (jobs: number, instances: number) => [
        `${plural(jobs, "job")} no longer ${jobs === 1 ? "assigns" : "assign"} shards to it; other servers take its shards.`,
        `Current runs on its ${plural(instances, "instance")} are not interrupted.`,
      ],
      shutdown: (jobs: number, instances: number) => [
        `${plural(instances, "instance")} ${instances === 1 ? "leaves" : "leave"} ${plural(jobs, "job")} after finishing current runs; the shards move to other servers.`,
      ],
      remove: (jobs: number, _instances: number) => [
        `The address is removed from ${plural(jobs, "job")}. It reappears when an instance joins from it.`,
      ],
    },
    enabled: (name: string, jobs: number) => `${name}: enabled for ${plural(jobs, "job")}.`,
    disabled: (name: string, jobs: number) => `${name}: disabled for ${plural(jobs, "job")}.`,
    shutDown: (name: string, jobs: number) =>
      `${name}: shutdown requested for ${plural(jobs, "job")}.`,
    removed: (name: string, jobs: number) => `${name}: removed from ${plural(jobs, "job")}.`,
  },
  instances: {
    about: "Processes that are connected to the registry now.",
    search: "Search instances",
    none: "No instances",
    noneAbout: "Start a program that joins this registry; it appears here automatically.",
    name: "Instance",
    server: "Server",
    language: "Language",
    since: "Online since",
    jobs: "Jobs",
    jobCount: (count: number) => plural(count, "job"),
  },
};
