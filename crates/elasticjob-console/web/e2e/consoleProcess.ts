import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const ROOT = join(import.meta.dirname, "../../../..");

export interface ConsoleProcess {
  url: string;
  /** Output until the console was ready. */
  output: string;
  /** Temporary folder, deleted when the process stops. */
  folder: string;
  stop: () => Promise<void>;
}

/** Starts `elasticjob dev --demo` on free ports with its own history store, and stops it after the tests. */
export default async function start() {
  const { url, stop } = await startDemo();
  process.env.CONSOLE_URL = url;
  return stop;
}

export const startDemo = () =>
  startElasticjob((folder) => [
    ...["dev", "--demo", "--registry-listen", "127.0.0.1:0", "--listen", "127.0.0.1:0"],
    ...["--history", `sqlite:${join(folder, "history.db")}`],
  ]);

/** Starts a console on an unreachable registry that allows adding connections; the account is `admin`. */
export async function startBareConsole(section: "addRegistries" | "addHistories") {
  const console = await startElasticjob((folder) => {
    const config = join(folder, "console.toml");
    writeFileSync(config, `[${section}]\nenabled = true\nhosts = ["127.0.0.1"]\n`);
    return [
      ...["console", "--config", config, "--data", join(folder, "data")],
      ...["--listen", "127.0.0.1:0", "--registry", "bare=zookeeper://127.0.0.1:1/bare"],
    ];
  });
  const password = /^account\s+admin \/ (\S+)/m.exec(console.output)?.[1] ?? "";
  return { ...console, password };
}

/** Starts the binary and waits until it prints the URL of its console. */
export async function startElasticjob(args: (folder: string) => string[]): Promise<ConsoleProcess> {
  const target = process.env.CARGO_TARGET_DIR ?? join(ROOT, "target");
  const binary = process.env.ELASTICJOB ?? join(target, "debug/elasticjob");
  if (!existsSync(binary)) {
    throw new Error(
      `${binary} does not exist; hint: cargo build -p elasticjob-cli, or make test-web`,
    );
  }
  const folder = mkdtempSync(join(tmpdir(), "elasticjob-e2e-"));
  const child = spawn(binary, args(folder), { stdio: ["ignore", "pipe", "pipe"] });
  const exited = new Promise((ended) => child.once("exit", ended));
  const { url, output } = await waitForUrl(child);
  const stop = async () => {
    child.kill("SIGTERM");
    await exited;
    rmSync(folder, { recursive: true, force: true });
  };
  return { url, output, folder, stop };
}

function waitForUrl(child: ReturnType<typeof spawn>): Promise<{ url: string; output: string }> {
  return new Promise((found, failed) => {
    let output = "";
    const onData = (chunk: Buffer) => {
      output += chunk.toString();
      const url = /^console\s+(https?:\/\/127\.0\.0\.1:\d+)\//m.exec(output)?.[1];
      if (url) found({ url, output });
    };
    child.stdout?.on("data", onData);
    child.stderr?.on("data", onData);
    child.once("exit", () => failed(new Error(`elasticjob ended: ${output}`)));
  });
}
