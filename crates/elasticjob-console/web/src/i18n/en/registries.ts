import { plural } from "./texts";

/** English: registries and history stores. */
export const registries = {
  registries: {
    choose: "Registry",
    switch: (name: string) => `Registry ${name}, switch`,
    about:
      "ZooKeeper namespaces that jobs and workers share. Selecting one affects only your own view.",
    fixed:
      "They are set by the console's flags or configuration file; adding them here is disabled.",
    unknown: (name: string) => `Registry ${name} does not exist, or you have no role in it.`,
    none: "No registries",
    noneAbout: "Start the console with --registry NAME=URL, or ask an admin for a role.",
    name: "Name",
    nameAbout: "Shown in this console and in its URLs",
    state: "State",
    url: "URL",
    urlAbout: "zookeeper://host1,host2/namespace; user and password stay on the server",
    jobs: "Jobs",
    role: "Your role",
    add: "Add registry",
    test: "Test",
    reachable: (jobs: number) => `Reachable, ${plural(jobs, "job")}.`,
    added: (name: string) => `Registry ${name} added.`,
    remove: (name: string) => `Remove registry ${name}`,
    removed: (name: string) => `Registry ${name} removed.`,
    removeConsequences: [
      "The console deletes its URL and password.",
      "The registry itself does not change; its jobs keep running.",
    ],
    states: {
      idle: "not connected",
      connecting: "connecting",
      connected: "connected",
      down: "down",
    },
  },
  histories: {
    title: "History stores",
    tabsLabel: "Connections",
    about: "The database that keeps the run history of each registry.",
    fixed:
      "They are set by the console's flags or configuration file; adding them here is disabled.",
    none: "No history stores",
    noneAbout:
      "Start the console with --history NAME=URL, the database in which workers record runs.",
    registry: "Registry",
    registryAbout: "The registry whose runs are recorded there",
    urlAbout:
      "postgres://user:password@host/database, or mysql://…; the password stays on the server",
    from: "Source",
    addedHere: "added here",
    configured: "configuration",
    add: "Add history store",
    added: (registry: string) => `History store of ${registry} added.`,
    remove: (registry: string) => `Remove the history store of ${registry}`,
    removed: (registry: string) => `History store of ${registry} removed.`,
    removeConsequences: [
      "The console deletes its URL and password.",
      "The database does not change; workers keep recording.",
    ],
  },
};
