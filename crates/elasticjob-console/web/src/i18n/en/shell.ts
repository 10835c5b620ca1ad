import { plural, type Texts } from "./texts";

/** English: navigation, command palette, shortcuts and login. */
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
    noMatch: "No match",
  },
  keys: {
    title: "Keyboard shortcuts",
    search: "Search this page, or all pages and jobs",
    palette: "Go to a page or a job",
    help: "Show these shortcuts",
  },
  login: {
    title: "Log in",
    username: "User name",
    password: "Password",
    show: "Show or hide the password",
    button: "Log in",
    wrong: "User name or password is wrong.",
    wait: (seconds: number) => `Too many attempts. Wait ${plural(seconds, "second")}.`,
    expired: "Your session has expired. Log in again to continue where you were.",
    or: "or",
    with: (name: string) => `Log in with ${name}`,
    oidcOutcomes: {
      unreachable: "The login provider cannot be reached.",
      stale: "The login took too long or was started in another window. Try again.",
      denied: "The login provider denied the login.",
      failed:
        "The login provider's response could not be verified. The console's audit log has the reason.",
      noRole:
        "You are logged in at the provider, but your groups have no role in this console. Ask an admin for one.",
      tooMany: "Too many logins from your address failed. Wait a moment and try again.",
    } as Texts,
    devHint:
      "elasticjob dev: root / root. Otherwise, the console printed the first password when it was first started.",
  },
};
