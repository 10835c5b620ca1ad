import { Button, Stack, Text } from "@mantine/core";
import { useState } from "react";

import { useDoctor } from "../../api/queries";
import { useHasRole, useRegistry } from "../../app/registry";
import { Badge } from "../../components/Badge";
import { Card } from "../../components/Card";
import { Icon } from "../../components/Icon";
import { MessageText } from "../../components/MessageText";
import { PageHeader } from "../../components/PageHeader";
import { ServerMessage } from "../../components/ServerMessage";
import { EmptyState, ErrorState, Loading } from "../../components/states";
import { useText } from "../../i18n";
import classes from "./DoctorPage.module.css";
import { type FindingGroup, groupFindings } from "./groups";

export function DoctorPage() {
  const t = useText();
  const isAllowed = useHasRole("operator");
  return (
    <>
      <PageHeader title={t.nav.doctor} about={t.doctor.about} />
      {isAllowed ? <Findings /> : <EmptyState icon="block" title={t.needsRole(t.roles.operator)} />}
    </>
  );
}

function Findings() {
  const t = useText();
  const registry = useRegistry();
  const doctor = useDoctor(registry);
  if (doctor.isPending) return <Loading />;
  if (!doctor.data)
    return <ErrorState error={doctor.error} onRetry={() => void doctor.refetch()} />;
  const problems = doctor.data.filter((each) => each.isProblem);
  const rest = doctor.data.filter((each) => !each.isProblem);
  return (
    <Stack gap="md">
      <Card
        title={problems.length > 0 ? t.doctor.problems(problems.length) : t.doctor.noProblems}
        right={
          <Button
            variant="default"
            size="compact-sm"
            leftSection={<Icon name="refresh" size={14} />}
            loading={doctor.isFetching}
            onClick={() => void doctor.refetch()}
          >
            {t.doctor.runAgain}
          </Button>
        }
        isFlush
      >
        <ul className={classes.findings}>
          {groupFindings([...problems, ...rest]).map((group) => (
            <FindingRow
              key={`${group.check} ${group.isProblem} ${group.message} ${group.hint}`}
              finding={group}
            />
          ))}
        </ul>
      </Card>
    </Stack>
  );
}

/** Names that a group shows at first. */
const INITIAL_NAMES = 5;

function FindingRow({ finding }: { finding: FindingGroup }) {
  const t = useText();
  const [shown, setShown] = useState(INITIAL_NAMES);
  const { abouts } = finding;
  return (
    <li className={classes.finding} data-finding={finding.check}>
      <div>
        <Badge tone={finding.isProblem ? "bad" : "ok"}>{t.doctor.checks[finding.check]}</Badge>
      </div>
      <div>
        <ServerMessage
          text={t.doctor.describe(finding.check, finding.isProblem, finding.message)}
          message={finding.message}
          prefix={
            abouts.length > 0 && (
              <>
                {abouts.length > 1 && `${abouts.length.toLocaleString()} × `}
                <b>{abouts.slice(0, shown).join(", ")}</b>
                {abouts.length > shown && (
                  <Button
                    variant="subtle"
                    size="compact-xs"
                    mx={4}
                    onClick={() => setShown(abouts.length)}
                  >
                    {t.overview.more(abouts.length - shown)}
                  </Button>
                )}
                {": "}
              </>
            )
          }
        />
        {finding.hint && (
          <Text size="sm" c="dimmed" className="wrap" component="div" lang="en">
            <MessageText text={finding.hint} />
          </Text>
        )}
      </div>
    </li>
  );
}
