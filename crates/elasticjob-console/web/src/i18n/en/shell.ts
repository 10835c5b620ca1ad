import { plural, type Texts } from "./texts";

/** English: the frame around the pages, and logging in. */
export const shell = {
  nav: {
    menu: "Menu",
    overview: "Overview",
    jobs: "Jobs",
    runs: "Runs",
    servers: "Servers",
    instances: "Instances",
    doctor: "Doctor",
    registries: "Registries",
    audit: "Audit",
    accounts: "Accounts",
    account: "My account",
    help: "Help",
    console: "Console",
    userMenu: (name: string) => `Account ${name}`,
  },
  palette: {
    open: "Search",
    placeholder: "Go to a page or a job…",
    page: "Page",
    job: "Job",
    nothing: "Nothing by that name",
  },
  keys: {
    title: "Keyboard",
    search: "Search on this page, or everywhere",
    palette: "Go anywhere",
    help: "These keys",
  },
  login: {
    title: "Log in",
    username: "User name",
    password: "Password",
    show: "Show or hide the password",
    button: "Log in",
    wrong: "User name or password is wrong.",
    wait: (seconds: number) => `Too many tries. Wait ${plural(seconds, "second")}.`,
    over: "Your session is over. Log in again to go on where you were.",
    or: "or",
    with: (name: string) => `Log in with ${name}`,
    elsewhere: {
      unreachable: "The login provider cannot be reached.",
      stale: "That login took too long, or was begun in another window. Try again.",
      denied: "The login provider refused.",
      failed:
        "What the login provider says could not be trusted. The console's audit has the reason.",
      noRole:
        "You are known there, but have no role in this console. Ask an admin to give your group one.",
    } as Texts,
    devHint:
      "elasticjob dev: root / root. Otherwise the first password was printed when the console first started.",
  },
};
