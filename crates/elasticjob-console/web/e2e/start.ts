import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const ROOT = join(import.meta.dirname, "../../../..");

/** Starts `elasticjob dev --demo` on free ports, and ends it with the tests. */
export default async function start() {
  const target = process.env.CARGO_TARGET_DIR ?? join(ROOT, "target");
  const binary = process.env.ELASTICJOB ?? join(target, "debug/elasticjob");
  if (!existsSync(binary)) {
    throw new Error(
      `${binary} is not there; hint: cargo build -p elasticjob-console, or make test-web`,
    );
  }
  // A history of its own: what ran elsewhere on this machine is not looked at.
  const folder = mkdtempSync(join(tmpdir(), "elasticjob-e2e-"));
  const args = ["dev", "--demo", "--registry-listen", "127.0.0.1:0", "--listen", "127.0.0.1:0"];
  args.push("--history", `sqlite:${join(folder, "history.db")}`);
  const child = spawn(binary, args, { stdio: ["ignore", "pipe", "pipe"] });
  process.env.CONSOLE_URL = await announced(child);
  return async () => {
    child.kill("SIGTERM");
    await new Promise((over) => child.once("exit", over));
    rmSync(folder, { recursive: true, force: true });
  };
}

/** Where the console says that it is. */
function announced(child: ReturnType<typeof spawn>): Promise<string> {
  return new Promise((found, failed) => {
    let said = "";
    const hear = (chunk: Buffer) => {
      said += chunk.toString();
      const url = /^console\s+(https?:\/\/127\.0\.0\.1:\d+)\//m.exec(said)?.[1];
      if (url) found(url);
    };
    child.stdout?.on("data", hear);
    child.stderr?.on("data", hear);
    child.once("exit", () => failed(new Error(`elasticjob dev ended: ${said}`)));
  });
}
