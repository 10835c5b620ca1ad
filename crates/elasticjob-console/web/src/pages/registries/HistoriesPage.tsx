import { Text } from "@mantine/core";
import { Link } from "react-router";

import { HISTORIES_KEY, useHistories } from "../../api/histories";
import { queryKeys, useRegistries } from "../../api/queries";
import type { HistoryStore } from "../../api/types";
import { isAdmin, useSession } from "../../app/session";
import { Badge } from "../../components/Badge";
import { useText } from "../../i18n";
import { AddHistoryDialog } from "./AddHistoryDialog";
import { ConnectionList } from "./ConnectionList";

/** The history store of each registry. */
export function HistoriesPage() {
  const t = useText();
  const session = useSession();
  const histories = useHistories();
  const registries = useRegistries();
  const registriesWithHistory = new Set(histories.data?.map(({ registry }) => registry));
  const registriesWithoutHistory =
    registries.data?.map(({ name }) => name).filter((name) => !registriesWithHistory.has(name)) ??
    [];
  return (
    <ConnectionList
      tab="histories"
      title={t.histories.title}
      texts={t.histories}
      query={histories}
      nameOf={(each) => each.registry}
      invalidates={(registry) => [HISTORIES_KEY, queryKeys.of(registry)]}
      canAdd={isAdmin(session) && session.canAddHistories}
      isAddDisabled={registriesWithoutHistory.length === 0}
      addDialog={(close) => (
        <AddHistoryDialog registries={registriesWithoutHistory} onClose={close} />
      )}
      width={560}
      columns={[
        {
          header: t.histories.registry,
          cell: (each) => (
            <Link className="name" to={`/r/${encodeURIComponent(each.registry)}/history`}>
              {each.registry}
            </Link>
          ),
        },
        { header: t.registries.state, cell: (each) => <HistoryState history={each} /> },
        {
          header: t.registries.url,
          isWide: true,
          className: "mono wrap",
          cell: (each) => each.url,
        },
        {
          header: t.histories.from,
          cell: (each) => (each.isAdded ? t.histories.addedHere : t.histories.configured),
        },
      ]}
    />
  );
}

function HistoryState({ history }: { history: HistoryStore }) {
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
