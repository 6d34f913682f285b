-- reads: spans, groups, exceptions
-- One cluster's spans, latest first, each with the sums of the task groups that name it (not those of spans within it).
WITH page AS (
    SELECT *
    FROM spans
    WHERE cluster = $cluster
    ORDER BY enqueued_at DESC, boot DESC, id
    LIMIT $limit OFFSET $offset
),
mine AS (
    SELECT g.*
    FROM groups g
    JOIN page p ON p.boot = g.boot AND p.id = g.span
    WHERE g.cluster = $cluster
),
made AS (
    SELECT
        boot, span, count(*) AS n_groups, capped(sum(n_tasks)) AS n_tasks, capped(sum(nbytes)) AS nbytes
    FROM mine
    GROUP BY boot, span
),
states AS (
    SELECT boot, span, map_from_entries(list((state, n) ORDER BY state)) AS states
    FROM (
        SELECT boot, span, e.key AS state, capped(sum(e.value)) AS n
        FROM (SELECT boot, span, unnest(map_entries(states)) AS e FROM mine)
        GROUP BY ALL
    )
    GROUP BY boot, span
),
spent AS (
    SELECT boot, span, map_from_entries(list((action, us) ORDER BY action)) AS action_us
    FROM (
        SELECT boot, span, e.key AS action, capped(sum(e.value)) AS us
        FROM (SELECT boot, span, unnest(map_entries(action_us)) AS e FROM mine)
        GROUP BY ALL
    )
    GROUP BY boot, span
),
failed AS (
    SELECT m.boot, m.span, capped(sum(e.count)) AS n_tasks_erred
    FROM exceptions e
    JOIN mine m ON m.boot = e.boot AND m.no = e.group_no
    WHERE e.cluster = $cluster
    GROUP BY m.boot, m.span
)
SELECT
    p.*,
    coalesce(made.n_groups, 0) AS n_groups,
    coalesce(made.n_tasks, 0) AS n_tasks,
    coalesce(made.nbytes, 0) AS nbytes,
    coalesce(failed.n_tasks_erred, 0) AS n_tasks_erred,
    coalesce(states.states, MAP {}::MAP(VARCHAR, BIGINT)) AS states,
    coalesce(spent.action_us, MAP {}::MAP(VARCHAR, BIGINT)) AS action_us
FROM page p
LEFT JOIN made ON made.boot = p.boot AND made.span = p.id
LEFT JOIN states ON states.boot = p.boot AND states.span = p.id
LEFT JOIN spent ON spent.boot = p.boot AND spent.span = p.id
LEFT JOIN failed ON failed.boot = p.boot AND failed.span = p.id
ORDER BY p.enqueued_at DESC, p.boot DESC, p.id
