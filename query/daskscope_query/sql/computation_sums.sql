-- reads: groups
-- What the task groups of the computations `ids` ('<boot>-<no>') come to together: tasks by state, workers' time by
-- action, bytes. Of a computation without a group there is no row.
WITH mine AS (
    SELECT boot || '-' || computation AS id, states, action_us, nbytes
    FROM groups
    WHERE cluster IN (SELECT unnest($clusters::VARCHAR[]))
      AND boot || '-' || computation IN (SELECT unnest($ids::VARCHAR[]))
),
counted AS (
    SELECT id, map_from_entries(list((state, n) ORDER BY state)) AS states
    FROM (
        SELECT id, e.key AS state, capped(sum(e.value)) AS n
        FROM (SELECT id, unnest(map_entries(states)) AS e FROM mine)
        GROUP BY ALL
    )
    GROUP BY id
),
spent AS (
    SELECT id, map_from_entries(list((action, us) ORDER BY action)) AS action_us
    FROM (
        SELECT id, e.key AS action, capped(sum(greatest(e.value, 0))) AS us
        FROM (SELECT id, unnest(map_entries(action_us)) AS e FROM mine)
        GROUP BY ALL
    )
    GROUP BY id
),
sizes AS (SELECT id, capped(sum(nbytes)) AS nbytes FROM mine GROUP BY id)
SELECT
    id,
    nbytes,
    coalesce(states, MAP {}::MAP(VARCHAR, BIGINT)) AS states,
    coalesce(action_us, MAP {}::MAP(VARCHAR, BIGINT)) AS action_us
FROM sizes
LEFT JOIN counted USING (id)
LEFT JOIN spent USING (id)
