import { baseUrl, disablePolling, expect, test } from "./fixtures";

test("the shards of a worker that is killed are seen to move, and nobody reloads the page", async ({
  root,
}) => {
  await disablePolling(root);
  await root.goto(`${baseUrl()}/r/dev/jobs/greet`);
  const lanes = root.locator("[data-instance]");
  await expect(lanes).toHaveCount(3);
  const victim = lanes.filter({ hasText: "worker-2" });
  const shard = await victim.locator("[data-shard]").first().getAttribute("data-shard");
  const id = await victim.getAttribute("data-instance");
  const pid = Number(/@-@(\d+)/.exec(id ?? "")?.[1]);

  process.kill(pid, "SIGKILL");

  // Whoever takes its place has another id; the shard is with somebody who is alive.
  await expect(root.locator(`[data-instance="${id}"]`)).toHaveCount(0, { timeout: 40_000 });
  await expect(root.locator(`[data-instance] [data-shard="${shard}"]`)).toHaveCount(1, {
    timeout: 40_000,
  });
});
