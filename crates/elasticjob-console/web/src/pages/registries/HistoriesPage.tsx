import { Text } from "@mantine/core";
import { Link } from "react-router";

import { HISTORIES, type History, useHistories } from "../../api/histories";
import { keys, useRegistries } from "../../api/queries";
import { rules, useSession } from "../../app/session";
import { useText } from "../../i18n";
import { Badge } from "../../parts/Badge";
import { AddHistory } from "./AddHistory";
import { Places } from "./Places";

/** Where what ran is kept, for each registry. */
export function HistoriesPage() {
  const t = useText();
  const session = useSession();
  const histories = useHistories();
  const registries = useRegistries();
  const known = new Set(histories.data?.map(({ registry }) => registry));
  const without = registries.data?.map(({ name }) => name).filter((name) => !known.has(name)) ?? [];
  return (
    <Places
      tab="histories"
      title={t.histories.title}
      words={t.histories}
      asked={histories}
      nameOf={(each) => each.registry}
      touches={(registry) => [HISTORIES, keys.of(registry)]}
      mayAdd={rules(session) && session.canAddHistories}
      isFull={without.length === 0}
      adding={(close) => <AddHistory without={without} onClose={close} />}
      width={560}
      columns={[
        {
          head: t.histories.registry,
          cell: (each) => (
            <Link className="name" to={`/r/${encodeURIComponent(each.registry)}/history`}>
              {each.registry}
            </Link>
          ),
        },
        { head: t.registries.state, cell: (each) => <HistoryState history={each} /> },
        {
          head: t.registries.url,
          isWide: true,
          className: "mono wrap",
          cell: (each) => each.url,
        },
        {
          head: t.histories.from,
          cell: (each) => (each.isAdded ? t.histories.addedHere : t.histories.configured),
        },
      ]}
    />
  );
}

function HistoryState({ history }: { history: History }) {
  const t = useText();
  if (history.problem) {
    return (
      <>
        <Badge tone="bad">{t.registries.states.down}</Badge>
        <Text size="xs" c="var(--bad)" className="wrap">
          {history.problem}
        </Text>
      </>
    );
  }
  return history.isOpen ? (
    <Badge tone="ok">{t.registries.states.connected}</Badge>
  ) : (
    <Badge tone="off">{t.registries.states.idle}</Badge>
  );
}
