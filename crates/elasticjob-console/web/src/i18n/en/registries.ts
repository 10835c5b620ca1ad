import { plural } from "./texts";

/** English: registries and histories. */
export const registries = {
  registries: {
    choose: "Registry",
    switch: (name: string) => `Registry ${name}, switch`,
    about:
      "Where jobs meet. Each has an address of its own in this console; your choice is yours alone.",
    fixed:
      "They come from the console's flags or configuration file; adding them here is switched off.",
    unknown: (name: string) => `Registry ${name} does not exist, or you have no role there.`,
    none: "No registry",
    noneAbout: "Start the console with --registry NAME=URL, or ask an admin for a role.",
    name: "Name",
    nameAbout: "What it is called here and in addresses",
    state: "State",
    url: "URL",
    urlAbout: "zookeeper://host1,host2/namespace; a user and password stay on the server",
    jobs: "Jobs",
    role: "Your role",
    add: "Add registry",
    test: "Test",
    reachable: (jobs: number) => `Reachable, ${plural(jobs, "job")}.`,
    added: (name: string) => `Registry ${name} is added.`,
    remove: (name: string) => `Remove registry ${name}`,
    removed: (name: string) => `Registry ${name} is removed.`,
    removeHappens: [
      "The console forgets its address and password.",
      "Nothing changes in the registry itself; jobs go on.",
    ],
    states: {
      idle: "not asked yet",
      connecting: "connecting",
      connected: "connected",
      down: "down",
    },
  },
  histories: {
    title: "Histories",
    places: "Where the console looks",
    about: "Where what ran is kept, for each registry.",
    fixed:
      "They come from the console's flags or configuration file; adding them here is switched off.",
    none: "No registry has a history",
    noneAbout: "Start the console with --history NAME=URL, where workers record what ran.",
    registry: "Registry",
    registryAbout: "Whose runs are recorded there",
    urlAbout:
      "postgres://user:password@host/database, or mysql://…; the password stays on the server",
    from: "Comes from",
    addedHere: "added here",
    configured: "configuration",
    add: "Add history",
    added: (registry: string) => `The history of ${registry} is added.`,
    remove: (registry: string) => `Remove the history of ${registry}`,
    removed: (registry: string) => `The history of ${registry} is removed.`,
    removeHappens: [
      "The console forgets its address and password.",
      "The database stays as it is; workers go on recording.",
    ],
  },
};
