import "./chart.css";

import { ActionIcon, Box, Group, Skeleton, Table, Text, Tooltip } from "@mantine/core";
import { lazy, Suspense, useMemo, useState } from "react";
import { Link, useNavigate } from "react-router";

import { useText } from "../../i18n";
import { Icon } from "../Icon";
import classes from "./BarChart.module.css";
import { type Layer, total } from "./layers";
import type { Tick } from "./ticks";
import { colour } from "./tones";

const Canvas = lazy(() => import("./Canvas"));

const HEIGHT = 180;

interface Props {
  title: string;
  /** What is to be seen, in a sentence. */
  says: string;
  /** The lowest first. */
  layers: Layer[];
  /** What a bar is called, and what such names are. */
  called: (index: number) => string;
  what: string;
  ticks: Tick[];
  steps: number[];
  format: (value: number) => string;
  /** What a layer comes to as a whole. */
  whole: (layer: Layer) => string;
  /** A value that should not be passed. */
  limit?: number;
  /** What is behind a bar. */
  to?: (index: number) => string | null;
}

/** Bars over time, with what they stand for; the same as a table for those who want it so. */
export function BarChart(props: Props) {
  const { title, says, layers, called, format, whole, to } = props;
  const t = useText();
  const navigate = useNavigate();
  const [isTable, setTable] = useState(false);
  const [pointed, setPointed] = useState<number | null>(null);
  const at = pointed !== null && pointed < (layers[0]?.values.length ?? 0) ? pointed : null;
  return (
    <figure className={classes.figure} aria-label={title} data-chart>
      <Group justify="space-between" align="flex-start" wrap="nowrap" gap="xs">
        <Box miw={0}>
          <Text size="sm" fw={600} component="figcaption">
            {title}{" "}
            <Text span size="xs" c="dimmed" fw={400} className="numeric">
              {at === null ? "" : called(at)}
            </Text>
          </Text>
          <ul className={classes.legend}>
            {layers.map((layer) => (
              <li key={layer.label}>
                <span
                  className={classes.swatch}
                  style={{ background: colour(layer.tone) }}
                  aria-hidden="true"
                />
                {layer.label} <b>{at === null ? whole(layer) : format(layer.values[at] ?? 0)}</b>
              </li>
            ))}
          </ul>
        </Box>
        <Tooltip label={isTable ? t.charts.asChart : t.charts.asTable}>
          <ActionIcon
            variant="subtle"
            color="gray"
            c="dimmed"
            aria-label={t.charts.tableOf(title)}
            aria-pressed={isTable}
            onClick={() => setTable(!isTable)}
          >
            <Icon name="jobs" />
          </ActionIcon>
        </Tooltip>
      </Group>
      {isTable ? (
        <Rows {...props} />
      ) : (
        <Suspense
          fallback={
            <div role="status" aria-label={t.loading}>
              <Skeleton height={HEIGHT} />
            </div>
          }
        >
          <div role="img" aria-label={says}>
            <Canvas
              layers={layers}
              ticks={props.ticks}
              steps={props.steps}
              format={format}
              limit={props.limit}
              height={HEIGHT}
              onPoint={setPointed}
              leads={(index) => to?.(index) != null}
              onPick={(index) => {
                const place = to?.(index);
                if (place) void navigate(place);
              }}
            />
          </div>
        </Suspense>
      )}
    </figure>
  );
}

function Rows({ title, layers, called, what, format, to }: Props) {
  const t = useText();
  const indices = useMemo(
    () =>
      Array.from({ length: layers[0]?.values.length ?? 0 }, (_, index) => index)
        .filter((index) => total(layers, index) > 0)
        .reverse(),
    [layers],
  );
  return (
    <Box
      className={classes.table}
      h={HEIGHT}
      role="region"
      aria-label={t.charts.tableOf(title)}
      tabIndex={0}
    >
      <Table verticalSpacing={2} fz="xs" stickyHeader>
        <Table.Thead>
          <Table.Tr>
            <Table.Th>{what}</Table.Th>
            {layers.map((layer) => (
              <Table.Th key={layer.label}>{layer.label}</Table.Th>
            ))}
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {indices.map((index) => {
            const place = to?.(index);
            return (
              <Table.Tr key={index}>
                <Table.Td className="numeric">
                  {place ? (
                    <Link className="name" to={place}>
                      {called(index)}
                    </Link>
                  ) : (
                    called(index)
                  )}
                </Table.Td>
                {layers.map((layer) => (
                  <Table.Td key={layer.label} className="numeric">
                    {format(layer.values[index] ?? 0)}
                  </Table.Td>
                ))}
              </Table.Tr>
            );
          })}
        </Table.Tbody>
      </Table>
    </Box>
  );
}
