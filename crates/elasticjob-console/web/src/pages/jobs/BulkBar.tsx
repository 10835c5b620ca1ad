import { Button, Group, Text } from "@mantine/core";
import { useState } from "react";

import { asProblem } from "../../api/problem";
import { fetchJobs } from "../../api/queries";
import { useRegistry } from "../../app/registry";
import { useText } from "../../i18n";
import { Allowed } from "../../parts/Allowed";
import { Icon, type IconName } from "../../parts/Icon";
import { useTell } from "../../parts/tell";
import type { Asked } from "./asked";
import { type BulkAction, BulkRun } from "./BulkRun";

const ACTIONS: { action: BulkAction; icon: IconName }[] = [
  { action: "trigger", icon: "play" },
  { action: "enable", icon: "check" },
  { action: "disable", icon: "pause" },
  { action: "shutdown", icon: "power" },
];

/** What can be done to the jobs that are selected, or to all that were found. */
export function BulkBar({
  asked,
  total,
  selected,
  onSelect,
}: {
  asked: Asked;
  total: number;
  selected: ReadonlySet<string>;
  onSelect: (selected: ReadonlySet<string>) => void;
}) {
  const t = useText();
  const tell = useTell();
  const registry = useRegistry();
  const [action, setAction] = useState<BulkAction | null>(null);
  const [isGathering, setGathering] = useState(false);

  const gather = async () => {
    setGathering(true);
    try {
      const names = new Set<string>();
      for (let page = 1; ; page += 1) {
        const found = await fetchJobs(registry, { ...asked, page, pageSize: 1_000 });
        for (const row of found.items) names.add(row.jobName);
        if (page * 1_000 >= found.total) break;
      }
      onSelect(names);
    } catch (error) {
      tell.failed(asProblem(error));
    } finally {
      setGathering(false);
    }
  };

  return (
    <Group
      px="sm"
      py="xs"
      gap="xs"
      bg="var(--busy-soft)"
      role="toolbar"
      aria-label={t.jobs.bulk}
      style={{ borderBlock: "1px solid var(--line)" }}
    >
      <Text size="sm" fw={600} className="numeric">
        {t.jobs.selected(selected.size)}
      </Text>
      {selected.size < total && (
        <Button
          variant="subtle"
          size="compact-sm"
          loading={isGathering}
          onClick={() => void gather()}
        >
          {t.jobs.selectAll(total)}
        </Button>
      )}
      <Button variant="subtle" size="compact-sm" onClick={() => onSelect(new Set())}>
        {t.jobs.selectNone}
      </Button>
      {ACTIONS.map(({ action, icon }) => (
        <Allowed needs="operator" key={action}>
          {(isRefused) => (
            <Button
              variant="default"
              size="compact-sm"
              leftSection={<Icon name={icon} size={14} />}
              disabled={isRefused}
              onClick={() => setAction(action)}
            >
              {t.job[action]}
            </Button>
          )}
        </Allowed>
      ))}
      {action && <BulkRun action={action} names={[...selected]} onClose={() => setAction(null)} />}
    </Group>
  );
}
