import { baseUrl, disablePolling, expect, test } from "./fixtures";

test("shards of a killed worker move without a reload", async ({ root }) => {
  await disablePolling(root);
  await root.goto(`${baseUrl()}/r/dev/jobs/greet`);
  const lanes = root.locator("[data-instance]");
  await expect(lanes).toHaveCount(3);
  const victim = lanes.filter({ hasText: "worker-2" });
  const shard = await victim.locator("[data-shard]").first().getAttribute("data-shard");
  const id = await victim.getAttribute("data-instance");
  const pid = Number(/@-@(\d+)/.exec(id ?? "")?.[1]);

  process.kill(pid, "SIGKILL");

  // A restarted worker has a new id; the shard moves to a living instance.
  await expect(root.locator(`[data-instance="${id}"]`)).toHaveCount(0, { timeout: 40_000 });
  await expect(root.locator(`[data-instance] [data-shard="${shard}"]`)).toHaveCount(1, {
    timeout: 40_000,
  });
});
