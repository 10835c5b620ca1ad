import "./chart.css";

import { ActionIcon, Box, Group, Skeleton, Table, Text, Tooltip } from "@mantine/core";
import { lazy, Suspense, useState } from "react";
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
  /** Text alternative of the chart. */
  summary: string;
  /** From bottom to top. */
  layers: Layer[];
  /** Label of a bar, and the header of these labels in the table. */
  barLabel: (index: number) => string;
  barHeader: string;
  ticks: Tick[];
  steps: number[];
  format: (value: number) => string;
  /** Legend value of a layer when no bar is hovered. */
  layerTotal: (layer: Layer) => string;
  /** Whether the table lists a bar; those with a value if unset. */
  hasBar?: (index: number) => boolean;
  /** Threshold, drawn as a dashed line. */
  limit?: number;
  /** Link of a bar. */
  linkOf?: (index: number) => string | null;
}

/** A stacked bar chart with a legend, which can be shown as a table. */
export function BarChart(props: Props) {
  const { title, summary, layers, barLabel, format, layerTotal, linkOf } = props;
  const t = useText();
  const navigate = useNavigate();
  const [isTable, setTable] = useState(false);
  const [hovered, setHovered] = useState<number | null>(null);
  const shown = hovered !== null && hovered < (layers[0]?.values.length ?? 0) ? hovered : null;
  return (
    <figure className={classes.figure} aria-label={title} data-chart>
      <Group justify="space-between" align="flex-start" wrap="nowrap" gap="xs">
        <Box miw={0}>
          <Text size="sm" fw={600} component="figcaption">
            {title}{" "}
            <Text span size="xs" c="dimmed" fw={400} className="numeric">
              {shown === null ? "" : barLabel(shown)}
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
                {layer.label}{" "}
                <b>{shown === null ? layerTotal(layer) : format(layer.values[shown] ?? 0)}</b>
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
        <ChartTable {...props} />
      ) : (
        <Suspense
          fallback={
            <div role="status" aria-label={t.loading}>
              <Skeleton height={HEIGHT} />
            </div>
          }
        >
          <div role="img" aria-label={summary}>
            <Canvas
              layers={layers}
              ticks={props.ticks}
              steps={props.steps}
              format={format}
              limit={props.limit}
              height={HEIGHT}
              onHover={setHovered}
              hasLink={(index) => linkOf?.(index) != null}
              onSelect={(index) => {
                const link = linkOf?.(index);
                if (link) void navigate(link);
              }}
            />
          </div>
        </Suspense>
      )}
    </figure>
  );
}

function ChartTable({ title, layers, barLabel, barHeader, format, linkOf, hasBar }: Props) {
  const t = useText();
  const indices = Array.from({ length: layers[0]?.values.length ?? 0 }, (_, index) => index)
    .filter((index) => hasBar?.(index) ?? total(layers, index) > 0)
    .reverse();
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
            <Table.Th>{barHeader}</Table.Th>
            {layers.map((layer) => (
              <Table.Th key={layer.label}>{layer.label}</Table.Th>
            ))}
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {indices.map((index) => {
            const link = linkOf?.(index);
            return (
              <Table.Tr key={index}>
                <Table.Td className="numeric">
                  {link ? (
                    <Link className="name" to={link}>
                      {barLabel(index)}
                    </Link>
                  ) : (
                    barLabel(index)
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
