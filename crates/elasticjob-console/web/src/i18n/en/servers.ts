import { plural } from "./texts";

/** English: servers and instances. */
export const servers = {
  servers: {
    about: "Machines that instances run on, by address.",
    search: "Search servers",
    none: "No servers",
    noneAbout: "A server is here once an instance on it has joined.",
    address: "Address",
    status: "Status",
    instances: "Instances",
    jobs: "Jobs",
    disabledJobs: (count: number) => `${count} disabled`,
    has: (instances: number, jobs: number) =>
      `${plural(instances, "instance")}, ${plural(jobs, "job")}`,
    isUp: "up",
    isGone: "no instance",
    isDisabled: "disabled",
    isPartly: "partly disabled",
    statuses: { ENABLED: "enabled", DISABLED: "disabled" },
    actionsOf: (name: string) => `Actions for ${name}`,
    jobOn: (job: string, server: string) => `${job} on ${server}`,
    acts: { enable: "Enable", disable: "Disable", shutdown: "Shut down", remove: "Remove" },
    removeLater: "Remove (once it is empty)",
    titles: {
      disable: (what: string) => `Disable ${what}?`,
      shutdown: (what: string) => `Shut ${what} down?`,
      remove: (what: string) => `Remove ${what}?`,
    },
    happens: {
      disable: (jobs: number, instances: number) => [
        `${plural(jobs, "job")} ${jobs === 1 ? "deals" : "deal"} no shards to it any more; others take them.`,
        `What its ${plural(instances, "instance")} ${instances === 1 ? "runs" : "run"} now is not interrupted.`,
      ],
      shutdown: (jobs: number, instances: number) => [
        `${plural(instances, "instance")} ${instances === 1 ? "leaves" : "leave"} ${plural(jobs, "job")} after finishing what runs; other servers take the shards.`,
      ],
      remove: (jobs: number, _instances: number) => [
        `The address is forgotten in ${plural(jobs, "job")}. It is there again when an instance joins from it.`,
      ],
    },
    enabled: (name: string, jobs: number) => `${name}: enabled for ${plural(jobs, "job")}.`,
    disabled: (name: string, jobs: number) => `${name}: disabled for ${plural(jobs, "job")}.`,
    shutDown: (name: string, jobs: number) => `${name}: told to leave ${plural(jobs, "job")}.`,
    removed: (name: string, jobs: number) => `${name}: removed from ${plural(jobs, "job")}.`,
  },
  instances: {
    about: "Programs that are there right now, each with an id of its own.",
    search: "Search instances",
    none: "No instances",
    noneAbout: "Start a program that joins this registry; it appears by itself.",
    name: "Instance",
    server: "Server",
    language: "Language",
    since: "There since",
    jobs: "Jobs",
    jobCount: (count: number) => plural(count, "job"),
  },
};
