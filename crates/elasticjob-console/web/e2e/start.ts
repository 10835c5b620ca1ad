import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const ROOT = join(import.meta.dirname, "../../../..");

export interface Started {
  url: string;
  /** Everything it said until it was there. */
  said: string;
  /** A folder of its own; gone when it has ended. */
  folder: string;
  end: () => Promise<void>;
}

/** Starts `elasticjob dev --demo` on free ports, with a history of its own, and ends it with the tests. */
export default async function start() {
  const { url, end } = await demonstration();
  process.env.CONSOLE_URL = url;
  return end;
}

export const demonstration = () =>
  elasticjob((folder) => [
    ...["dev", "--demo", "--registry-listen", "127.0.0.1:0", "--listen", "127.0.0.1:0"],
    ...["--history", `sqlite:${join(folder, "history.db")}`],
  ]);

/** A console of its own, on a registry that is not there, where such things may be added; `admin` has the password it said. */
export async function bare(adds: "addRegistries" | "addHistories") {
  const started = await elasticjob((folder) => {
    const config = join(folder, "console.toml");
    writeFileSync(config, `[${adds}]\nenabled = true\nhosts = ["127.0.0.1"]\n`);
    return [
      ...["console", "--config", config, "--data", join(folder, "data")],
      ...["--listen", "127.0.0.1:0", "--registry", "bare=zookeeper://127.0.0.1:1/bare"],
    ];
  });
  const password = /^account\s+admin \/ (\S+)/m.exec(started.said)?.[1] ?? "";
  return { ...started, password };
}

/** Starts the real binary; it is there when it says where its console is. */
export async function elasticjob(args: (folder: string) => string[]): Promise<Started> {
  const target = process.env.CARGO_TARGET_DIR ?? join(ROOT, "target");
  const binary = process.env.ELASTICJOB ?? join(target, "debug/elasticjob");
  if (!existsSync(binary)) {
    throw new Error(
      `${binary} is not there; hint: cargo build -p elasticjob-console, or make test-web`,
    );
  }
  const folder = mkdtempSync(join(tmpdir(), "elasticjob-e2e-"));
  const child = spawn(binary, args(folder), { stdio: ["ignore", "pipe", "pipe"] });
  const over = new Promise((ended) => child.once("exit", ended));
  const { url, said } = await announced(child);
  const end = async () => {
    child.kill("SIGTERM");
    await over;
    rmSync(folder, { recursive: true, force: true });
  };
  return { url, said, folder, end };
}

/** Where the console says that it is. */
function announced(child: ReturnType<typeof spawn>): Promise<{ url: string; said: string }> {
  return new Promise((found, failed) => {
    let said = "";
    const hear = (chunk: Buffer) => {
      said += chunk.toString();
      const url = /^console\s+(https?:\/\/127\.0\.0\.1:\d+)\//m.exec(said)?.[1];
      if (url) found({ url, said });
    };
    child.stdout?.on("data", hear);
    child.stderr?.on("data", hear);
    child.once("exit", () => failed(new Error(`elasticjob ended: ${said}`)));
  });
}
