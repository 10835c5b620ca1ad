import { ActionIcon, Button, Table, Text } from "@mantine/core";
import { useState } from "react";
import { Link } from "react-router";

import { useAct } from "../../api/act";
import { ask, segment } from "../../api/client";
import { keys, useRegistries } from "../../api/queries";
import type { Registry } from "../../api/types";
import { rules, useSession } from "../../app/session";
import { useText } from "../../i18n";
import { Card } from "../../parts/Card";
import { Confirm } from "../../parts/Confirm";
import { HiddenHead } from "../../parts/HiddenHead";
import { Icon } from "../../parts/Icon";
import { PageHead } from "../../parts/PageHead";
import { Scroll } from "../../parts/Scroll";
import { Empty, Failure, Loading } from "../../parts/states";
import { AddRegistry } from "./AddRegistry";
import { RegistryState } from "./RegistryState";

export function RegistriesPage() {
  const t = useText();
  const session = useSession();
  const registries = useRegistries();
  const mayAdd = rules(session) && session.canAddRegistries;
  const [isAdding, setAdding] = useState(false);
  const [removed, setRemoved] = useState<Registry | null>(null);
  const remove = useAct<string>({
    run: (name) => ask("DELETE", `/registries/${segment(name)}`),
    done: (_, name) => t.registries.removed(name),
    touches: [keys.registries],
  });
  return (
    <>
      <PageHead
        title={t.nav.registries}
        about={mayAdd ? t.registries.about : `${t.registries.about} ${t.registries.fixed}`}
      >
        {mayAdd && (
          <Button leftSection={<Icon name="plus" />} onClick={() => setAdding(true)}>
            {t.registries.add}
          </Button>
        )}
      </PageHead>
      <Card isFlush>
        {registries.isPending ? (
          <Loading />
        ) : !registries.data ? (
          <Failure error={registries.error} again={() => void registries.refetch()} />
        ) : registries.data.length === 0 ? (
          <Empty icon="registry" title={t.registries.none}>
            {t.registries.noneAbout}
          </Empty>
        ) : (
          <Scroll label={t.nav.registries}>
            <Table miw={640}>
              <Table.Thead>
                <Table.Tr>
                  <Table.Th>{t.registries.name}</Table.Th>
                  <Table.Th>{t.registries.state}</Table.Th>
                  <Table.Th>{t.registries.url}</Table.Th>
                  <Table.Th>{t.registries.jobs}</Table.Th>
                  <Table.Th>{t.registries.role}</Table.Th>
                  <HiddenHead width={44} label={t.jobs.actions} />
                </Table.Tr>
              </Table.Thead>
              <Table.Tbody>
                {registries.data.map((each) => (
                  <Table.Tr key={each.name}>
                    <Table.Td>
                      <Link className="name" to={`/r/${encodeURIComponent(each.name)}`}>
                        {each.name}
                      </Link>
                    </Table.Td>
                    <Table.Td>
                      <RegistryState state={each.state} />
                      {each.problem && (
                        <Text size="xs" c="var(--bad)" className="wrap">
                          {each.problem}
                        </Text>
                      )}
                    </Table.Td>
                    <Table.Td className="mono wrap">{each.url}</Table.Td>
                    <Table.Td className="numeric">{each.jobCount ?? "–"}</Table.Td>
                    <Table.Td>{t.roles[each.role]}</Table.Td>
                    <Table.Td>
                      {mayAdd && each.isAdded && (
                        <ActionIcon
                          variant="subtle"
                          color="gray"
                          c="dimmed"
                          aria-label={t.registries.remove(each.name)}
                          onClick={() => setRemoved(each)}
                        >
                          <Icon name="trash" />
                        </ActionIcon>
                      )}
                    </Table.Td>
                  </Table.Tr>
                ))}
              </Table.Tbody>
            </Table>
          </Scroll>
        )}
      </Card>
      {isAdding && <AddRegistry onClose={() => setAdding(false)} />}
      {removed && (
        <Confirm
          title={t.registries.remove(removed.name)}
          happens={t.registries.removeHappens}
          button={t.job.remove}
          isBusy={remove.isPending}
          onConfirm={() => remove.mutate(removed.name, { onSuccess: () => setRemoved(null) })}
          onClose={() => setRemoved(null)}
        />
      )}
    </>
  );
}
