"""Tests of a server with kazoo, the Python client for ZooKeeper.

    python recipes.py 127.0.0.1:2181

runs kazoo's recipes and basic operations against the server at that address. Each test uses its own
path, waits for events instead of sleeping, and aborts the run if it hangs.
"""

import faulthandler
import logging
import queue
import socket
import sys
import threading
import unittest
import uuid
from concurrent.futures import Future

from kazoo import exceptions
from kazoo.client import KazooClient, KazooState
from kazoo.protocol.states import EventType
from kazoo.recipe.cache import TreeCache, TreeEvent
from kazoo.security import CREATOR_ALL_ACL, READ_ACL_UNSAFE, make_digest_acl

TIMEOUT = 20.0  # seconds to wait for an expected event
SHORT_WAIT = 0.2  # seconds in which no event is expected
HANG_TIMEOUT = 90.0  # seconds after which a hanging test aborts the run

ADDRESS = None  # host:port, from the command line


class KazooTest(unittest.TestCase):
    """Gives each test its own path, and closes its clients afterwards."""

    def setUp(self):
        faulthandler.dump_traceback_later(HANG_TIMEOUT, exit=True)
        self.addCleanup(faulthandler.cancel_dump_traceback_later)
        self.path = f"/kazoo-{self._testMethodName}-{uuid.uuid4().hex}"
        self.client = self.connect()
        self.client.create(self.path)
        self.addCleanup(self.client.delete, self.path, recursive=True)

    def connect(self, **options):
        client = KazooClient(ADDRESS, **options)
        client.start(TIMEOUT)
        self.addCleanup(close, client)
        return client

    def wait(self, event):
        self.assertTrue(event.wait(TIMEOUT), "the event did not occur")

    def wait_for_children(self, path, count):
        """Returns once there are `count` children under `path`."""
        enough = threading.Event()

        def look(children):
            if len(children) == count:
                enough.set()
                return False  # ends the watch
            return True

        self.client.ensure_path(path)
        self.client.ChildrenWatch(path, look)
        self.wait(enough)

    def in_background(self, function, *arguments, **options):
        future = Future()

        def run():
            try:
                future.set_result(function(*arguments, **options))
            except BaseException as error:  # raised again by result()
                future.set_exception(error)

        threading.Thread(target=run, daemon=True).start()
        return future


def close(client):
    client.stop()
    client.close()


def is_server_reachable():
    client = KazooClient(ADDRESS)
    try:
        client.start(TIMEOUT)
    except client.handler.timeout_exception:
        return False
    close(client)
    return True


class Nodes(KazooTest):
    def test_node_is_created_read_changed_and_deleted(self):
        path = self.path + "/node"

        self.assertEqual(self.client.create(path, b"one"), path)
        data, created = self.client.get(path)
        self.assertEqual((data, created.version, created.data_length), (b"one", 0, 3))
        changed = self.client.set(path, b"other", version=0)
        self.assertEqual((changed.version, changed.data_length), (1, 5))
        self.assertEqual(changed.czxid, created.czxid)
        self.assertGreater(changed.mzxid, created.mzxid)
        self.client.delete(path, version=1)

        self.assertIsNone(self.client.exists(path))

    def test_invalid_operations_raise_their_errors(self):
        path = self.path + "/node"
        self.client.create(path)
        self.client.create(path + "/child")

        with self.assertRaises(exceptions.NodeExistsError):
            self.client.create(path)
        with self.assertRaises(exceptions.NoNodeError):
            self.client.create(self.path + "/absent/child")
        with self.assertRaises(exceptions.NoNodeError):
            self.client.get(self.path + "/absent")
        with self.assertRaises(exceptions.NoNodeError):
            self.client.get_children(self.path + "/absent")
        with self.assertRaises(exceptions.BadVersionError):
            self.client.set(path, b"", version=7)
        with self.assertRaises(exceptions.BadVersionError):
            self.client.delete(path + "/child", version=7)
        with self.assertRaises(exceptions.NotEmptyError):
            self.client.delete(path)

    def test_create_returns_the_stat(self):
        path, stat = self.client.create(self.path + "/node", b"four", include_data=True)

        self.assertEqual(path, self.path + "/node")
        self.assertEqual((stat.version, stat.data_length, stat.ephemeralOwner), (0, 4, 0))
        self.assertEqual(stat, self.client.exists(path))

    def test_get_children_returns_the_stat_of_the_parent(self):
        for name in ("b", "a"):
            self.client.create(f"{self.path}/{name}")

        children, stat = self.client.get_children(self.path, include_data=True)

        self.assertEqual(sorted(children), ["a", "b"])
        self.assertEqual((stat.children_count, stat.cversion), (2, 2))

    def test_sequence_number_increases_after_deletions(self):
        first = self.client.create(self.path + "/node-", sequence=True)
        self.client.delete(first)
        second = self.client.create(self.path + "/node-", sequence=True)
        third = self.client.create(self.path + "/", sequence=True)

        self.assertEqual(first, self.path + "/node-0000000000")
        self.assertEqual(second, self.path + "/node-0000000001")
        self.assertEqual(third, self.path + "/0000000002")

    def test_ephemeral_node_is_deleted_with_its_session(self):
        path = self.path + "/node"
        owner = self.connect()
        owner.create(path, ephemeral=True)
        deleted = queue.Queue()
        stat = self.client.exists(path, watch=deleted.put)
        self.assertEqual(stat.ephemeralOwner, owner.client_id[0])

        owner.stop()

        self.assertEqual(deleted.get(timeout=TIMEOUT).type, EventType.DELETED)
        self.assertIsNone(self.client.exists(path))

    def test_ephemeral_node_cannot_have_children(self):
        self.client.create(self.path + "/node", ephemeral=True)

        with self.assertRaises(exceptions.NoChildrenForEphemeralsError):
            self.client.create(self.path + "/node/child")

    def test_names_and_data_round_trip(self):
        names = ["über", "作业", "with space", "a.b-c_d"]
        data = bytes(range(256)) * 2000
        for name in names:
            self.client.create(f"{self.path}/{name}", data)

        self.assertEqual(sorted(self.client.get_children(self.path)), sorted(names))
        for name in names:
            self.assertEqual(self.client.get(f"{self.path}/{name}")[0], data)

    def test_pipelined_requests_complete_in_order(self):
        answered = []
        requests = []
        for number in range(300):
            request = self.client.create_async(f"{self.path}/{number}", str(number).encode())
            request.rawlink(lambda _, number=number: answered.append(number))
            requests.append(request)
        last = self.client.get_children_async(self.path)

        self.assertEqual(len(last.get(timeout=TIMEOUT)), 300)
        for number, request in enumerate(requests):
            self.assertEqual(request.get(timeout=TIMEOUT), f"{self.path}/{number}")
        self.client.sync(self.path)
        self.assertEqual(answered, list(range(300)))

    def test_sync_returns_the_path(self):
        self.assertEqual(self.client.sync(self.path), self.path)


class Transactions(KazooTest):
    def test_valid_transaction_is_committed(self):
        self.client.create(self.path + "/old", b"old")
        transaction = self.client.transaction()
        transaction.check(self.path + "/old", version=0)
        transaction.create(self.path + "/new", b"new")
        transaction.create(self.path + "/new/child-", sequence=True, ephemeral=True)
        transaction.set_data(self.path + "/new", b"newer", version=0)
        transaction.delete(self.path + "/old", version=0)

        checked, created, child, changed, deleted = transaction.commit()

        self.assertIs(checked, True)
        self.assertEqual(created, self.path + "/new")
        self.assertEqual(child, self.path + "/new/child-0000000000")
        self.assertEqual((changed.version, changed.data_length), (1, 5))
        self.assertIs(deleted, True)
        self.assertEqual(self.client.get_children(self.path), ["new"])
        self.assertEqual(self.client.get(self.path + "/new")[0], b"newer")

    def test_failed_transaction_changes_nothing(self):
        self.client.create(self.path + "/old", b"old")
        transaction = self.client.transaction()
        transaction.create(self.path + "/new")
        transaction.set_data(self.path + "/old", b"changed", version=0)
        transaction.check(self.path + "/old", version=0)
        transaction.delete(self.path + "/old")

        results = transaction.commit()

        # The check sees the version after the preceding change.
        self.assertEqual(
            [type(result) for result in results],
            [
                exceptions.RolledBackError,
                exceptions.RolledBackError,
                exceptions.BadVersionError,
                exceptions.RuntimeInconsistency,
            ],
        )
        self.assertEqual(self.client.get_children(self.path), ["old"])
        self.assertEqual(self.client.get(self.path + "/old")[0], b"old")

    def test_failed_transaction_names_the_failed_operation(self):
        for make, error in (
            (lambda it: it.create(self.path), exceptions.NodeExistsError),
            (lambda it: it.create(self.path + "/a/b"), exceptions.NoNodeError),
            (lambda it: it.delete(self.path + "/absent"), exceptions.NoNodeError),
            (lambda it: it.set_data(self.path, b"", version=7), exceptions.BadVersionError),
        ):
            transaction = self.client.transaction()
            make(transaction)
            transaction.create(self.path + "/never")

            results = transaction.commit()

            self.assertEqual(
                [type(result) for result in results], [error, exceptions.RuntimeInconsistency]
            )
        self.assertEqual(self.client.get_children(self.path), [])


class Access(KazooTest):
    def test_digest_acl_refuses_other_clients(self):
        path = self.path + "/node"
        acl = [make_digest_acl("user", "secret", all=True)]
        owner = self.connect(auth_data=[("digest", "user:secret")])
        impostor = self.connect(auth_data=[("digest", "user:guess")])
        owner.create(path, b"private", acl=acl)
        self.addCleanup(self.client.delete, path)  # the parent's ACL decides about deletion

        for stranger in (self.client, impostor):
            with self.assertRaises(exceptions.NoAuthError):
                stranger.get(path)
            with self.assertRaises(exceptions.NoAuthError):
                stranger.set(path, b"")
            with self.assertRaises(exceptions.NoAuthError):
                stranger.get_children(path)
            with self.assertRaises(exceptions.NoAuthError):
                stranger.create(path + "/child")
            with self.assertRaises(exceptions.NoAuthError):
                stranger.set_acls(path, READ_ACL_UNSAFE)
        self.assertEqual(owner.get(path)[0], b"private")
        self.assertEqual(owner.get_acls(path)[0], acl)

    def test_added_auth_grants_access(self):
        path = self.path + "/node"
        acl = [make_digest_acl("user", "secret", read=True)]
        self.client.create(path, b"private", acl=acl)
        with self.assertRaises(exceptions.NoAuthError):
            self.client.get(path)

        self.client.add_auth("digest", "user:secret")

        self.assertEqual(self.client.get(path)[0], b"private")
        with self.assertRaises(exceptions.NoAuthError):
            self.client.set(path, b"")

    def test_creator_acl_resolves_to_the_authenticated_user(self):
        path = self.path + "/node"
        with self.assertRaises(exceptions.InvalidACLError):
            self.client.create(path, acl=CREATOR_ALL_ACL)

        self.client.add_auth("digest", "user:secret")
        self.client.create(path, acl=CREATOR_ALL_ACL)

        self.assertEqual(
            self.client.get_acls(path)[0], [make_digest_acl("user", "secret", all=True)]
        )

    def test_set_acls_requires_the_current_version(self):
        path = self.path + "/node"
        self.client.create(path)
        with self.assertRaises(exceptions.BadVersionError):
            self.client.set_acls(path, READ_ACL_UNSAFE, version=7)

        stat = self.client.set_acls(path, READ_ACL_UNSAFE, version=0)

        self.assertEqual(stat.aversion, 1)
        self.assertEqual(self.client.get_acls(path)[0], READ_ACL_UNSAFE)
        with self.assertRaises(exceptions.NoAuthError):
            self.client.set(path, b"")


class Watches(KazooTest):
    def test_one_shot_watch_reports_the_first_event_only(self):
        path = self.path + "/node"
        other = self.connect()
        seen = queue.Queue()

        self.assertIsNone(self.client.exists(path, watch=seen.put))
        other.create(path)
        self.assert_event(seen, EventType.CREATED, path)
        self.client.get(path, watch=seen.put)
        other.set(path, b"one")
        self.assert_event(seen, EventType.CHANGED, path)
        other.set(path, b"two")
        self.client.get_children(path, watch=seen.put)
        other.create(path + "/child")
        self.assert_event(seen, EventType.CHILD, path)
        other.delete(path + "/child")
        self.client.get_children(path, watch=seen.put)
        other.delete(path)
        self.assert_event(seen, EventType.DELETED, path)

        # Earlier notifications arrive before the reply.
        self.client.sync(path)
        with self.assertRaises(queue.Empty):
            seen.get(timeout=SHORT_WAIT)

    def assert_event(self, seen, kind, path):
        event = seen.get(timeout=TIMEOUT)
        self.assertEqual((event.type, event.path), (kind, path))

    def test_data_watch_follows_a_node(self):
        path = self.path + "/node"
        other = self.connect()
        seen = queue.Queue()

        self.client.DataWatch(path, lambda data, stat: seen.put(data))
        self.assertIsNone(seen.get(timeout=TIMEOUT))
        for data in (b"one", b"two", b"three"):
            if data == b"one":
                other.create(path, data)
            else:
                other.set(path, data)
            self.assertEqual(seen.get(timeout=TIMEOUT), data)
        other.delete(path)

        self.assertIsNone(seen.get(timeout=TIMEOUT))

    def test_children_watch_follows_the_children(self):
        other = self.connect()
        seen = queue.Queue()

        self.client.ChildrenWatch(self.path, lambda children: seen.put(sorted(children)))
        self.assertEqual(seen.get(timeout=TIMEOUT), [])
        other.create(self.path + "/a")
        self.assertEqual(seen.get(timeout=TIMEOUT), ["a"])
        other.create(self.path + "/b")
        self.assertEqual(seen.get(timeout=TIMEOUT), ["a", "b"])
        other.delete(self.path + "/a")

        self.assertEqual(seen.get(timeout=TIMEOUT), ["b"])

    def test_tree_cache_follows_a_tree(self):
        other = self.connect()
        other.create(self.path + "/a", b"a")
        other.create(self.path + "/a/b", b"b")
        events = queue.Queue()
        cache = TreeCache(self.client, self.path)
        cache.listen(events.put)
        cache.start()
        self.addCleanup(cache.close)

        known = set()
        while (event := events.get(timeout=TIMEOUT)).event_type != TreeEvent.INITIALIZED:
            self.assertEqual(event.event_type, TreeEvent.NODE_ADDED)
            known.add(event.event_data.path)
        self.assertEqual(known, {self.path, self.path + "/a", self.path + "/a/b"})
        self.assertEqual(cache.get_data(self.path + "/a/b").data, b"b")
        self.assertEqual(cache.get_children(self.path), {"a"})

        other.set(self.path + "/a/b", b"changed")
        self.assert_tree_event(events, TreeEvent.NODE_UPDATED, "/a/b", b"changed")
        other.create(self.path + "/c", b"c")
        self.assert_tree_event(events, TreeEvent.NODE_ADDED, "/c", b"c")
        other.delete(self.path + "/a/b")
        self.assert_tree_event(events, TreeEvent.NODE_REMOVED, "/a/b", b"changed")
        self.assertEqual(cache.get_children(self.path), {"a", "c"})
        self.assertIsNone(cache.get_data(self.path + "/a/b"))

    def assert_tree_event(self, events, kind, path, data):
        event = events.get(timeout=TIMEOUT)
        self.assertEqual(
            (event.event_type, event.event_data.path, event.event_data.data),
            (kind, self.path + path, data),
        )


class Sessions(KazooTest):
    def setUp(self):
        super().setUp()
        # Reconnects slowly, so that changes can be made while it is disconnected.
        self.owner = self.connect(connection_retry={"max_tries": -1, "delay": 0.5})
        self.states = queue.Queue()
        self.owner.add_listener(self.states.put)

    def drop_connection(self):
        self.owner._connection._socket.shutdown(socket.SHUT_RDWR)
        self.assertEqual(self.states.get(timeout=TIMEOUT), KazooState.SUSPENDED)

    def test_session_survives_a_reconnect(self):
        self.owner.create(self.path + "/node", ephemeral=True)
        session = self.owner.client_id

        self.drop_connection()

        self.assertEqual(self.states.get(timeout=TIMEOUT), KazooState.CONNECTED)
        self.assertEqual(self.owner.client_id, session)
        stat = self.owner.exists(self.path + "/node")
        self.assertEqual(stat.ephemeralOwner, session[0])

    def test_data_watch_survives_a_reconnect(self):
        seen = queue.Queue()
        self.owner.DataWatch(self.path, lambda data, stat: seen.put(data))
        self.assertEqual(seen.get(timeout=TIMEOUT), b"")

        self.drop_connection()
        self.client.set(self.path, b"meanwhile")

        self.assertEqual(seen.get(timeout=TIMEOUT), b"meanwhile")

    def test_session_closed_by_another_client_is_lost_with_its_nodes(self):
        deleted = threading.Event()
        self.owner.create(self.path + "/node", ephemeral=True)
        self.client.exists(self.path + "/node", watch=lambda event: deleted.set())
        session, password = self.owner.client_id

        thief = self.connect(client_id=(session, password))
        self.assertEqual(thief.client_id[0], session)
        thief.stop()

        self.wait(deleted)
        states = [self.states.get(timeout=TIMEOUT)]
        while states[-1] != KazooState.LOST:
            states.append(self.states.get(timeout=TIMEOUT))
        while states[-1] != KazooState.CONNECTED:
            states.append(self.states.get(timeout=TIMEOUT))
        self.assertNotEqual(self.owner.client_id[0], session)

    def test_session_is_not_resumed_with_a_wrong_password(self):
        session, _ = self.owner.client_id
        node = self.owner.create(self.path + "/node", ephemeral=True)

        thief = self.connect(client_id=(session, bytes(15) + b"\x01"))

        self.assertNotEqual(thief.client_id[0], session)
        self.assertEqual(self.client.exists(node).ephemeralOwner, session)


class Locks(KazooTest):
    def test_lock_is_held_by_one_client_at_a_time(self):
        first = self.client.Lock(self.path, "first")
        second = self.connect().Lock(self.path, "second")

        self.assertTrue(first.acquire(timeout=TIMEOUT))
        waiting = self.in_background(second.acquire, timeout=TIMEOUT)
        self.wait_for_children(self.path, 2)
        self.assertEqual(first.contenders(), ["first", "second"])
        self.assertFalse(waiting.done())
        first.release()

        self.assertTrue(waiting.result(TIMEOUT))
        self.assertEqual(second.contenders(), ["second"])

    def test_lock_is_released_when_its_holder_stops(self):
        holder = self.connect()
        self.assertTrue(holder.Lock(self.path).acquire(timeout=TIMEOUT))
        waiting = self.in_background(self.client.Lock(self.path).acquire, timeout=TIMEOUT)
        self.wait_for_children(self.path, 2)

        holder.stop()

        self.assertTrue(waiting.result(TIMEOUT))

    def test_lock_can_be_tried_without_waiting(self):
        first, second = self.client.Lock(self.path), self.connect().Lock(self.path)
        self.assertTrue(first.acquire(timeout=TIMEOUT))

        self.assertFalse(second.acquire(blocking=False))
        with self.assertRaises(exceptions.LockTimeout):
            second.acquire(timeout=SHORT_WAIT)

        self.assertEqual(len(first.contenders()), 1)

    def test_readers_share_a_lock_and_writers_do_not(self):
        readers = [self.client.ReadLock(self.path), self.connect().ReadLock(self.path)]
        writer = self.connect().WriteLock(self.path)
        for reader in readers:
            self.assertTrue(reader.acquire(timeout=TIMEOUT))

        writing = self.in_background(writer.acquire, timeout=TIMEOUT)
        self.wait_for_children(self.path, 3)
        late = self.connect().ReadLock(self.path)
        reading = self.in_background(late.acquire, timeout=TIMEOUT)
        self.wait_for_children(self.path, 4)
        readers[0].release()
        self.assertFalse(writing.done())
        readers[1].release()
        self.assertTrue(writing.result(TIMEOUT))
        self.assertFalse(reading.done())
        writer.release()

        self.assertTrue(reading.result(TIMEOUT))

    def test_semaphore_grants_max_leases(self):
        def semaphore(name):
            return self.connect().Semaphore(self.path + "/leases", name, max_leases=2)

        first, second, third = semaphore("first"), semaphore("second"), semaphore("third")
        self.assertTrue(first.acquire(timeout=TIMEOUT))
        self.assertTrue(second.acquire(timeout=TIMEOUT))
        self.assertFalse(third.acquire(blocking=False))

        waiting = self.in_background(third.acquire, timeout=TIMEOUT)
        self.wait_for_children(self.path + "/leases-__lock__", 1)
        self.assertEqual(sorted(first.lease_holders()), ["first", "second"])
        first.release()

        self.assertTrue(waiting.result(TIMEOUT))
        self.assertEqual(sorted(first.lease_holders()), ["second", "third"])

    def test_election_has_one_leader_at_a_time(self):
        leads, may_go = queue.Queue(), {"first": threading.Event(), "second": threading.Event()}

        def lead(name):
            leads.put(name)
            self.wait(may_go[name])

        first = self.client.Election(self.path, "first")
        second = self.connect().Election(self.path, "second")
        first_run = self.in_background(first.run, lead, "first")
        self.assertEqual(leads.get(timeout=TIMEOUT), "first")
        second_run = self.in_background(second.run, lead, "second")
        self.wait_for_children(self.path, 2)
        self.assertEqual(first.contenders(), ["first", "second"])
        self.assertTrue(leads.empty())
        may_go["first"].set()
        self.assertEqual(leads.get(timeout=TIMEOUT), "second")
        may_go["second"].set()

        first_run.result(TIMEOUT)
        second_run.result(TIMEOUT)
        self.assertEqual(second.contenders(), [])

    def test_cancelled_candidate_leaves_the_election(self):
        lock = self.client.Lock(self.path, "leader")
        self.assertTrue(lock.acquire(timeout=TIMEOUT))
        election = self.connect().Election(self.path, "candidate")
        run = self.in_background(election.run, self.fail)
        self.wait_for_children(self.path, 2)

        election.cancel()

        run.result(TIMEOUT)
        self.assertEqual(lock.contenders(), ["leader"])


class Groups(KazooTest):
    def test_party_lists_its_current_members(self):
        self.assert_party(lambda client, name: client.Party(self.path, name))

    def test_shallow_party_lists_its_current_members(self):
        self.assert_party(lambda client, name: client.ShallowParty(self.path, name))

    def assert_party(self, party):
        here, there = self.connect(), self.connect()
        first, second, third = party(self.client, "one"), party(here, "two"), party(there, "three")
        for member in (first, second, third):
            member.join()
        self.assertEqual(sorted(first), ["one", "three", "two"])

        second.leave()
        there.stop()
        self.wait_for_children(self.path, 1)

        self.assertEqual(list(first), ["one"])
        self.assertEqual(len(first), 1)

    def test_barrier_holds_until_it_is_removed(self):
        path = self.path + "/barrier"
        here, there = self.client.Barrier(path), self.connect().Barrier(path)
        here.create()
        self.assertFalse(there.wait(SHORT_WAIT))

        waiting = self.in_background(there.wait, TIMEOUT)
        self.assertTrue(here.remove())

        self.assertTrue(waiting.result(TIMEOUT))
        self.assertFalse(here.remove())

    def test_double_barrier_is_entered_and_left_together(self):
        barriers = [self.connect().DoubleBarrier(self.path, 3, name) for name in "abc"]

        entering = [self.in_background(barrier.enter) for barrier in barriers[:2]]
        self.wait_for_children(self.path, 2)
        self.assertFalse(any(entered.done() for entered in entering))
        entering.append(self.in_background(barriers[2].enter))
        for entered in entering:
            entered.result(TIMEOUT)
        self.assertTrue(all(barrier.participating for barrier in barriers))
        leaving = [self.in_background(barrier.leave) for barrier in barriers]
        for left in leaving:
            left.result(TIMEOUT)

        self.assertEqual(self.client.get_children(self.path), [])

    def test_counter_loses_no_increment(self):
        fast_retry = {"max_tries": -1, "delay": 0.01, "max_delay": 0.05}
        counters = [
            self.connect(command_retry=fast_retry).Counter(self.path + "/counter") for _ in range(3)
        ]

        def count(counter):
            for _ in range(20):
                counter += 2
                counter -= 1

        for counting in [self.in_background(count, counter) for counter in counters]:
            counting.result(TIMEOUT)

        self.assertEqual(self.client.Counter(self.path + "/counter").value, 60)


class Queues(KazooTest):
    def test_queue_returns_each_item_once_by_priority(self):
        here, there = self.client.Queue(self.path), self.connect().Queue(self.path)
        here.put(b"later", priority=200)
        here.put(b"one")
        there.put(b"two")
        there.put(b"now", priority=1)
        self.assertEqual(len(here), 4)

        items = [consumer.get() for consumer in (here, there, here, there, here)]

        self.assertEqual(items, [b"now", b"one", b"two", b"later", None])

    def test_locking_queue_keeps_an_item_until_it_is_consumed(self):
        here, there = self.client.LockingQueue(self.path), self.connect().LockingQueue(self.path)
        here.put_all([b"one", b"two"])
        here.put(b"now", priority=1)

        self.assertEqual(here.get(TIMEOUT), b"now")
        self.assertEqual(there.get(TIMEOUT), b"one")
        self.assertTrue(here.holds_lock())
        self.assertTrue(there.release())
        self.assertEqual(there.get(TIMEOUT), b"one")
        self.assertTrue(there.consume())
        self.assertTrue(here.consume())

        self.assertEqual(len(here), 1)
        self.assertEqual(there.get(TIMEOUT), b"two")

    def test_locking_queue_releases_items_of_a_stopped_client(self):
        lost = self.connect()
        queue_there = lost.LockingQueue(self.path)
        queue_there.put(b"item")
        self.assertEqual(queue_there.get(TIMEOUT), b"item")
        waiting = self.in_background(self.client.LockingQueue(self.path).get, TIMEOUT)

        lost.stop()

        self.assertEqual(waiting.result(TIMEOUT), b"item")

    def test_waiting_consumer_of_a_locking_queue_gets_the_next_item(self):
        here, there = self.client.LockingQueue(self.path), self.connect().LockingQueue(self.path)
        self.assertIsNone(here.get(timeout=SHORT_WAIT))

        waiting = self.in_background(here.get, TIMEOUT)
        there.put(b"item")

        self.assertEqual(waiting.result(TIMEOUT), b"item")


if __name__ == "__main__":
    if len(sys.argv) < 2 or ":" not in sys.argv[1]:
        sys.exit("usage: python recipes.py <host>:<port> [unittest's options]")
    ADDRESS = sys.argv.pop(1)
    # These tests drop connections on purpose, which kazoo logs extensively.
    logging.getLogger("kazoo").addHandler(logging.NullHandler())
    logging.getLogger("kazoo").propagate = False
    if not is_server_reachable():
        sys.exit(f"no server at {ADDRESS}")
    unittest.main()
