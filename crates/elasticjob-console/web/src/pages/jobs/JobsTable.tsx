import { Checkbox, Group, Table, Text, UnstyledButton } from "@mantine/core";
import { memo, useCallback, useRef } from "react";

import type { JobFigures } from "../../api/history";
import type { JobRow } from "../../api/types";
import { useText } from "../../i18n";
import { HiddenHead } from "../../parts/HiddenHead";
import { Icon } from "../../parts/Icon";
import { JobLink } from "../../parts/JobLink";
import { Scroll } from "../../parts/Scroll";
import { JobStatusBadge } from "../../parts/statuses";
import { JobMenu } from "./JobMenu";
import { type ListProps, toggled } from "./list";
import { NextFire } from "./NextFire";
import { RowSigns } from "./RowSigns";
import { Sparkline } from "./Sparkline";

export function JobsTable({ rows, figures, asked, onChange, selected, onSelect }: ListProps) {
  const t = useText();
  const isAll = rows.every((row) => selected.has(row.jobName));
  const isSome = rows.some((row) => selected.has(row.jobName));
  const latest = useRef(selected);
  latest.current = selected;
  const toggle = useCallback((name: string) => onSelect(toggled(latest.current, name)), [onSelect]);

  const head = (key: string, label: string) => {
    const isBy = asked.sort === key;
    return (
      <Table.Th
        aria-sort={isBy ? (asked.order === "asc" ? "ascending" : "descending") : undefined}
        style={{ whiteSpace: "nowrap" }}
      >
        <UnstyledButton
          fz="sm"
          fw={600}
          onClick={() =>
            onChange({ sort: key, order: isBy && asked.order === "asc" ? "desc" : "asc" })
          }
        >
          {label} {isBy ? (asked.order === "asc" ? "↑" : "↓") : ""}
        </UnstyledButton>
      </Table.Th>
    );
  };

  return (
    <Scroll label={t.nav.jobs}>
      <Table highlightOnHover miw={900}>
        <Table.Thead>
          <Table.Tr>
            <Table.Th w={40}>
              <Checkbox
                size="xs"
                aria-label={t.jobs.selectPage}
                checked={isAll}
                indeterminate={isSome && !isAll}
                onChange={() =>
                  onSelect(isAll ? new Set() : new Set(rows.map((row) => row.jobName)))
                }
              />
            </Table.Th>
            {head("jobName", t.jobs.name)}
            {head("status", t.jobs.status)}
            {head("nextFireTime", t.jobs.next)}
            {figures && <Table.Th style={{ whiteSpace: "nowrap" }}>{t.jobs.lastRuns}</Table.Th>}
            {head("shardingTotalCount", t.jobs.shards)}
            {head("instanceCount", t.jobs.instances)}
            <Table.Th>{t.jobs.runsWith}</Table.Th>
            <HiddenHead width={44} label={t.jobs.actions} />
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {rows.map((row) => (
            <Row
              key={row.jobName}
              row={row}
              past={figures === null ? null : figures.get(row.jobName)}
              isSelected={selected.has(row.jobName)}
              onToggle={toggle}
            />
          ))}
        </Table.Tbody>
      </Table>
    </Scroll>
  );
}

/** Drawn anew only when its own job changes. */
const Row = memo(function Row({
  row,
  past,
  isSelected,
  onToggle,
}: {
  row: JobRow;
  /** Nothing where there is no history. */
  past: JobFigures | undefined | null;
  isSelected: boolean;
  onToggle: (name: string) => void;
}) {
  const t = useText();
  return (
    <Table.Tr bg={isSelected ? "var(--busy-soft)" : undefined} data-job={row.jobName}>
      <Table.Td>
        <Checkbox
          size="xs"
          aria-label={t.jobs.select(row.jobName)}
          checked={isSelected}
          onChange={() => onToggle(row.jobName)}
        />
      </Table.Td>
      <Table.Td maw={340}>
        <Group gap={8} wrap="nowrap">
          <JobLink name={row.jobName} />
          {row.label && (
            <Text span size="xs" c="dimmed" className="mono">
              {row.label}
            </Text>
          )}
        </Group>
        {row.problem ? (
          <Text size="xs" c="var(--bad)" lineClamp={2}>
            <Icon name="alert" size={12} /> {row.problem}
          </Text>
        ) : (
          <Text size="xs" c="dimmed" lineClamp={1}>
            {row.description}
          </Text>
        )}
      </Table.Td>
      <Table.Td>
        <Group gap={6}>
          <JobStatusBadge status={row.status} />
          <RowSigns row={row} />
        </Group>
      </Table.Td>
      <Table.Td>
        <NextFire row={row} />
      </Table.Td>
      {past !== null && (
        <Table.Td>
          <Sparkline of={past} />
        </Table.Td>
      )}
      <Table.Td className="numeric">{row.shardingTotalCount ?? "–"}</Table.Td>
      <Table.Td className="numeric">{row.instanceCount}</Table.Td>
      <Table.Td>
        <Text span size="sm" c="dimmed">
          {t.handlers[row.handler.kind]}
        </Text>
      </Table.Td>
      <Table.Td>
        <JobMenu row={row} />
      </Table.Td>
    </Table.Tr>
  );
});
