"""Everyday pairs of statements: which are recognised as changes, and which are not.

Each line holds an earlier and a later statement. No line stems from labelled data.
"""

import pytest

from memgraph.model.enums import Relation
from memgraph.relations.compare import compare
from memgraph.relations.statement import Statement

CHANGES = """
The essay deadline is 3 March. | The essay deadline got pushed back to 10 March.
The fee is $40. | The fee went up to $55.
The book club meets on Mondays. | The book club now meets on Thursdays.
I prefer window seats. | I prefer aisle seats now.
I prefer trains over planes. | I prefer planes over trains.
Our test server is called otter. | Our test server is now called badger.
The CTO is Nadia. | Femi is the new CTO.
The head nurse is Olga. | Olga stepped down as head nurse.
Kim handles returns. | Ola handles returns now.
My cat is called Miso. | My cat's name is Nori.
The order is in transit. | The order was delivered.
Search is in beta. | Search is generally available.
Ines works at Bosch. | Ines started a new job at Siemens.
Omar is a junior developer. | Omar is now a senior developer.
We format with yapf. | We format with ruff now, not yapf.
Our house is insured with Axa. | Our house is insured with Zurich.
The interest rate is 3%. | The interest rate is 2% since the review.
Lea can't drive. | Lea passed her driving test.
I hate mornings. | I've come to love mornings.
I'm vegetarian. | I eat meat again.
The bakery opens at 7. | The bakery opens at 6 from Monday.
Parking costs 4 euros. | From next month parking costs 5 euros.
The canteen is open. | The canteen is closed starting in July.
Our courier is Hermes. | As of 1 March our courier is DHL.
We own a rowing boat. | The rowing boat was sold to the club.
I subscribe to the Morning Star. | I cancelled the Morning Star because it got too expensive.
Nuno lives in Braga. | Nuno finished school and moved to Faro.
I ride a blue Peugeot. | My old bike was a wreck, and I ride a green Trek now.
There is a hiring freeze. | The hiring freeze was lifted on Monday.
Our trainee is 19. | Our trainee turned 20 on Friday.
The print shop is on Dock Street. | The print shop on Dock Street shut its doors.
The audit is on the last Monday of the term. | The audit is on the last Friday of the term.
Our landline number is 030 4471. | Our landline number is 030 5582.
Petra drives a Fiat Panda. | Petra sold her Fiat Panda.
Petra drives a Fiat Panda. | Petra now drives a Renault Zoe.
The kitchen is on the ground floor. | The kitchen is on the first floor.
Our internet provider is Netcologne. | We changed our internet provider from Netcologne to Vodafone.
The VPN uses WireGuard. | The VPN was switched from WireGuard to OpenVPN.
The swimming course is on Wednesday afternoon. | The swimming course is on Thursday afternoon.
Lena works at Siemens. | Lena works at Bosch.
Lena works at Siemens. | Lena quit Siemens.
Lena works at Siemens. | Lena left Siemens and joined Bosch.
The retention period is six months. | The retention period is two years.
The CI uses Node 18. | The CI uses Node 20.
The frontend is deployed on Fridays. | The frontend is no longer deployed on Fridays.
We never use force push. | We always use force push.
Employees can bring their dogs to work. | Employees can't bring their dogs to work.
The treasurer of the club is Holger. | The treasurer of the club is Meike.
Holger is the treasurer of the club. | Meike is the treasurer of the club.
The DNS server is 10.0.0.2. | The DNS server is 10.0.0.53.
The office network is 192.168.4.0/24. | The office network is 192.168.8.0/22.
The server room is kept at 19 degrees. | The server room is kept at 22 degrees.
The bus leaves at 7:42. | The bus leaves at 7:51.
The bus leaves at 7:42. | The bus now leaves at 7:51.
Ravi's favourite colour is green. | Ravi's favourite colour is orange.
Ravi is 41 years old. | Ravi is 42 years old.
Ravi has two children. | Ravi has three children.
The mobile plan includes 10 GB of data. | The mobile plan includes 25 GB of data.
The contract runs until 31 March 2026. | The contract runs until 30 June 2026.
The launch is planned for 4 May. | The launch was postponed to 18 May.
The launch is planned for 4 May. | The launch was cancelled.
The launch is on 4 May. | The launch is on 11 May.
Our logo is blue. | Our logo is now green.
The workshop takes place in room 12. | The workshop takes place in room 31.
The API limit is 100 requests a minute. | The API limit was raised to 300 requests a minute.
The API rate limit is 100 requests per minute. | The API rate limit is 300 requests per minute.
The mailing list is hosted at Google Groups. | The mailing list has moved to Discourse.
Two-factor login is optional. | Two-factor login is mandatory.
Comments are enabled on the blog. | Comments are disabled on the blog.
The lift is out of order. | The lift works again.
Karin plays the violin in the city orchestra. | Karin no longer plays in the city orchestra.
Karin takes sugar in her tea. | Karin doesn't take sugar in her tea.
Karin is learning Dutch. | Karin gave up learning Dutch.
Karin wants to study medicine. | Karin doesn't want to study medicine any more.
Reports are written in German. | Reports are now written in English.
The archive is encrypted. | The archive is unencrypted.
Our backups go to Amazon S3. | Our backups go to Backblaze B2.
The password policy requires 8 characters. | The password policy requires 12 characters.
We use Jira for tickets. | We use Linear for tickets.
We use Jira for tickets. | We replaced Jira with Linear.
We use Jira for tickets. | We've moved from Jira to Linear.
The users table lives in PostgreSQL. | The users table was moved to DynamoDB.
The orders service is owned by team Otter. | The orders service is owned by team Lynx.
Team Otter owns the orders service. | Team Lynx owns the orders service.
Team Otter owns the orders service. | Team Lynx took over the orders service from team Otter.
The sensor reports every 10 seconds. | The sensor reports every 30 seconds.
The gym membership costs 29 euros a month. | The gym membership went up to 34 euros a month.
The gym membership costs 29 euros a month. | The gym membership costs 34 euros per month now.
Tests must be run before merging. | Tests need not be run before merging.
Guests must sign in at reception. | Guests don't have to sign in at reception.
Smoking is allowed on the balcony. | Smoking is not allowed on the balcony.
Uploads are limited to 20 MB. | Uploads are limited to 100 MB.
The team has seven members. | The team now has nine members.
The warehouse employs 30 people. | The warehouse employs 45 people.
The default timeout is 30 seconds. | The default timeout is 60 seconds.
I usually get up at six. | These days I get up at seven.
My favourite editor is Vim. | My favourite editor is Helix.
My wife works as a nurse. | My wife works as a teacher now.
My wife is pregnant. | My wife gave birth to a boy on Sunday.
My car is in the garage for repair. | My car has been repaired.
I'm afraid of flying. | I'm no longer afraid of flying.
I have not read Ulysses. | I've finally read Ulysses.
Our landlord is called Jonas. | Our landlord is called Lukas.
The invoice from Brandt is unpaid. | The invoice from Brandt has been paid.
The build is red. | The build is green again.
The build takes 12 minutes. | The build now takes 4 minutes.
The package manager is npm. | The package manager is pnpm.
The package is delivered by DHL. | The package is delivered by UPS.
Mein Bruder wohnt in Kiel. | Mein Bruder wohnt in Rostock.
Das Büro ist freitags geschlossen. | Das Büro ist freitags geöffnet.
Unser Hausarzt ist Dr. Klein. | Unser neuer Hausarzt ist Dr. Weber.
Le magasin ferme à 19 h. | Le magasin ferme à 20 h.
Ma sœur habite à Lyon. | Ma sœur habite à Lille.
Mi hermano trabaja en Seat. | Mi hermano trabaja en Renault.
The choir is on the first Tuesday of the month. | The choir is on the third Thursday of the month.
Gym for 5b: Monday 19:00. | Gym for 5b has been moved to Wednesday 18:00.
The Mertens hearing is on Tuesday. | The Mertens hearing was adjourned to Thursday.
The choir rehearses twice a week. | The choir rehearses three times a week.
Failed uploads are tried again three times. | Failed uploads are tried again once.
The newsletter goes out once a month. | The newsletter goes out twice a month.
Agnes feeds the goats at quarter to six. | Agnes feeds the goats at seven.
The ferry leaves at half past ten. | The ferry leaves at quarter to eleven.
The crate holds a dozen bottles. | The crate holds eighteen bottles.
The waiting list takes a week. | The waiting list takes ten days.
The tutor supervises four students. | The tutor supervises seven students.
A night porter looks after two entrances. | A night porter looks after three entrances.
The gateway supports SMS login. | SMS login is not supported by the gateway any more.
The clinic accepts walk-in patients. | Walk-in patients are no longer accepted by the clinic.
We sell honey at the gate. | Honey is not sold at the gate any more.
Ticket 552 is still open. | Ticket 552 has been closed.
The incident from Monday is unresolved. | The incident from Monday has been resolved.
Olga works as a lifeguard. | Olga quit her job as a lifeguard.
I work as a courier. | I resigned as a courier.
Wanda teaches at the village school. | Wanda has retired from the village school.
Bruno owns a canoe. | Bruno sold the canoe.
Paula has a library book about bees. | Paula returned the library book about bees.
We rent a garage in Mill Street. | We gave up the garage in Mill Street.
The mail server has never been down. | The mail server was down for an hour yesterday.
Dentist appointment for Leo: 3 May, 15:00. | Leo's dentist appointment was rescheduled to 10 May.
The spare keys are in the drawer under the sink. | The spare keys are in the locker at the gate.
The van is parked behind the church. | The van is parked in front of the town hall.
The first-aid kit is on the shelf by the door. | The first-aid kit is in the box under the counter.
Winter tyres are stored in the cellar. | Winter tyres are stored in the garage.
Der Chor probt dienstags. | Der Chor probt jetzt donnerstags.
Die Gruppe wird von Frau Lang betreut. | Die Gruppe wird jetzt von Herrn Novak betreut.
Der Laden hat montags geschlossen. | Der Laden hat jetzt montags geöffnet.
Mein Onkel arbeitet bei Bosch. | Mein Onkel arbeitet nicht mehr bei Bosch.
Die Miete beträgt 700 Euro. | Die Miete beträgt jetzt 760 Euro.
Le marché a lieu le samedi matin. | Le marché a lieu le dimanche matin.
Les clients ont accès au parking. | Les clients n'ont plus accès au parking.
La salle ferme à 20 h. | La salle ferme désormais à 22 h.
El museo abre los lunes. | El museo ya no abre los lunes.
La reunión es el martes. | La reunión es ahora el jueves.
Mi hermana vive en Sevilla. | Mi hermana ahora vive en Bilbao.
Karl drives a taxi. | Karl stopped driving a taxi.
The ponds are frozen. | The ponds have thawed.
We have a cleaner. | We don't have a cleaner any more.
The bridge is closed to lorries. | The bridge is open to lorries again.
Our bakery is closed for renovation. | Our bakery reopened on Saturday.
The pipeline is broken. | The pipeline is fixed.
The lease hasn't been signed. | The lease was signed this morning.
We're flying to Malta in June. | We cancelled the flights to Malta.
Bea is the goalkeeper. | Sanne is the goalkeeper.
Fatima is our contact at the bank. | Our contact at the bank is Mr Jonsson now.
Our internet provider is Telstar. | We switched our internet provider to Nordnet.
The lease ends in June. | The lease was extended until December.
The firewall blocks port 25. | The firewall no longer blocks port 25.
The dashboard refreshes every minute. | The dashboard refreshes every five minutes.
The bin is emptied on Mondays. | The bin is emptied on Fridays.
The shop opens at 7. | The shop opens at 6:30.
The alarm rings at 8 am. | The alarm rings at 8 pm.
The daily stand-up is at 9:30. | The daily stand-up is at 10.
My dentist's appointment is on Monday at 3. | My dentist's appointment is on Wednesday at 10.
The release is planned for 12 December. | The release slipped to 19 December.
The workshop is on 14 February. | We had to move the workshop to 21 February as it snows.
Deliveries leave at 5:45. | Deliveries no longer leave at 5:45 but at 6:15.
Invoices go to Helen. | Invoices no longer go to Helen but to Marcus.
We use Slack. | We no longer use Slack but Teams.
The fee is 30 euros. | The fee is no longer 30 euros but 35 euros.
The head gardener is Lucy Marsh. | Tom Birch is head gardener now.
The CEO is Petra Vogel. | Petra Vogel stepped down; Oskar Lind is CEO now.
Our database is PostgreSQL 15. | We migrated to PostgreSQL 17.
My phone runs on Android 13. | I upgraded to Android 14.
Backups are stored in Backblaze B2. | Backups went from Backblaze B2 to Wasabi.
We have 14 employees. | We are 15 employees now.
We're eight people. | And we're ten people now, not eight.
I'm allergic to peanuts. | Turns out I'm not allergic to peanuts.
We decided to charge 65 euros per person. | We raised the price to 70 euros per person.
The fee is 40 euros per child. | We raised the fee to 45 euros per child.
"""
COMPATIBLE = """
Kim runs five miles. | Ola runs five miles now.
The office is big and near the lake. | The office is now quiet and near the lake.
Our dog is called Rex. | Our dog's name was on the list.
The ideas come from this team. | The ideas come from our guests.
I cook vegetarian meals on Mondays. | I eat fish and meat now.
I prefer to walk. | I prefer to run.
I prefer trains over planes. | I prefer trains over buses.
Our cats are called Tom and Max. | My cat is called Max.
The first room is called Oak. | The second room is called Elm.
Kim handles returns. | Ola handles invoices now.
Omar is a father. | Omar is now a developer.
We drink tea. | We drink coffee, not juice.
Lea can't drive on Sundays. | Lea has a driving licence.
I'm vegetarian. | My sister eats meat again.
My order is in transit. | Your letter was delivered.
I resigned as a courier. | I resigned as a clerk.
The minutes are in the green folder. | The minutes from May are in the red folder.
I am on call. | I am on call from Tuesday.
The bakery opens at 7. | The bakery is open from Monday to Friday.
The letter from May is lost. | The letter from June is lost.
The roof nursery is in the hands of Odile. | The roof nursery is open to the public on Sundays.
Granite holds its standup at 11:05. | The headcount of Granite stands at nine now.
The plants in the Utrecht office need water. | The Utrecht office was sold to the city council.
Ms Obi handles our account at Cardew Textiles. | Ms Obi handles our account at Belmar Textiles.
Viktor may work from home three days a week. | Viktor switched to a vegan diet.
Farida is the boss of Jonas Whitfield. | Farida is the boss of Hassan Tanaka.
Amara Whitfield is a teacher by trade. | Pavel Tanaka is a teacher by trade.
The Poppy team is led by Lukas. | The Raven team is led by Lukas.
An agency is to build project Clover. | An agency is to build project Thunder.
We pay Belmar Timber within 10 days. | We extend the contract with Eastfold Mills by two years.
The payment term of Quayle Mills is 60 days. | The term of Belmar Inks changed from 60 to 21 days.
We met at the lake and swam, visit 1. | We met at the lake and swam, visit 2.
Anna manages project Atlas. | Anna manages project Borealis.
We publish Clover One under BSD. | We publish Marigold Two under BSD.
Petra drives a Fiat Panda. | Petra's brother drives a Renault Zoe.
Lena works at Siemens. | Lena's husband works at Bosch.
The kitchen is on the ground floor. | The bathroom is on the first floor.
The test VPN uses WireGuard. | The production VPN uses OpenVPN.
The swimming course is on Wednesday afternoon. | The diving course is on Thursday afternoon.
The CI uses Node 18 for the frontend. | The CI uses Node 20 for the backend.
Ravi has a beard. | Ravi has a moustache.
Ravi likes jazz. | Ravi likes techno.
Ravi visited Rome. | Ravi visited Naples.
Ravi has a brother in Delhi. | Ravi has a sister in Mumbai.
The bus to Kiel leaves at 7:42. | The bus to Plön leaves at 7:51.
The bus leaves at 7:42. | The bus arrives at 8:15.
Karin plays the violin. | Karin sings in a choir.
Karin was a nurse. | Karin is a teacher.
Karin worked at Siemens until 2019. | Karin works at Bosch.
Before the reform the fee was 20 euros. | The fee is 30 euros.
The fee for adults is 20 euros. | The fee for children is 10 euros.
The adult fee is 20 euros. | The child fee is 10 euros.
The API has a rate limit of 100 requests per minute. | The API has a timeout of 30 seconds.
The office in Oslo has 40 desks. | The office in Bergen has 22 desks.
We deploy the backend with Helm. | We deploy the frontend with Ansible.
We use Jira for tickets. | We use Slack for chat.
We use Jira. | We use Confluence.
Team Otter owns the orders service. | Team Lynx owns the billing service.
Team Otter owns the orders service. | Team Otter owns the returns service.
Guests may use the pool. | Guests may use the sauna.
Guests may use the pool. | Guests must not use the gym.
Guests may use the pool. | Children must not use the pool alone.
The library is closed on Sundays. | The library is open on Saturdays.
The library closes at 18:00. | On Fridays the library closes at 16:00.
At least two reviewers are needed. | Three reviewers are recommended.
The job needs at least 4 GB of memory. | The job uses 6 GB of memory on average.
The job fails when the disk is full. | The job succeeds when the disk has space.
In March we sold 120 bikes. | In April we sold 95 bikes.
On Monday I ran 5 km. | On Wednesday I ran 8 km.
Version 1.4 supports Java 11. | Version 2.0 supports Java 17.
Python 3.11 is installed on host a1. | Python 3.12 is installed on host a2.
My mother's birthday is on 3 May. | My father's birthday is on 9 June.
My old phone had 64 GB. | My new phone has 256 GB.
Tim thinks the API should be REST. | Eva thinks the API should be GraphQL.
The red team meets on Mondays. | The blue team meets on Tuesdays.
The first meeting is on Monday. | The second meeting is on Friday.
The morning shift starts at 6:00. | The night shift starts at 22:00.
The tea is hot. | The tea is sweet.
Eva is a lawyer. | Eva is a mother of two.
Eva is in the platform team. | Eva is in the works council.
Eva has an appointment on Monday. | Eva has an appointment on Friday.
Eva is on holiday from 3 to 10 May. | Eva is on holiday from 12 to 20 December.
Eva speaks fluent Danish. | Eva doesn't speak Norwegian.
Parcels are delivered by DHL. | Letters are delivered by the post office.
The report is sent to Eva. | The report is also sent to Tim.
The report is sent to Eva. | The report is written by Tim.
The repository has 12 contributors. | The repository has 340 stars.
The exam has 40 questions. | The exam lasts 90 minutes.
The lower limit is 5. | The upper limit is 20.
Port 22 is closed. | Port 80 is open.
The front door is locked. | The back door is unlocked.
The soup costs 6 euros. | The soup with bread costs 8 euros.
Tom's flight leaves at 9:10. | Tom's train leaves at 9:40.
The invoice of March is paid. | The invoice of April is unpaid.
Do not delete the log files. | The log files are deleted after 30 days.
The cat sleeps on the sofa. | The cat eats at seven.
Our server in Frankfurt runs Debian. | Our server in Dublin runs Ubuntu.
The summer menu has five dishes. | The winter menu has seven dishes.
The car can seat five. | The car can reach 180 km/h.
Tim wants to buy an e-bike. | Tim wants to buy a house.
Tim owns a boat. | Tim owns a caravan.
Tim has been to Peru. | Tim has been to Chile.
Tim met Eva in Rome. | Tim met Eva in Paris.
Der Laden in Köln öffnet um 9 Uhr. | Der Laden in Bonn öffnet um 10 Uhr.
Mein Bruder wohnt in Kiel. | Meine Schwester wohnt in Rostock.
Internal users may export data. | External users must not export data.
The trial lasts 14 days. | The paid plan lasts one year.
The cache is enabled by default. | The debug log is disabled by default.
Alerts go to the on-call channel. | Deploy notices go to the release channel.
Rent includes heating. | Rent does not include electricity.
Half of the team works remotely. | The team has eleven members.
Due date: 15 May | Due date: 20 May
We're looking for a flat. | We're looking for a flat by the sea, and I found two.
The choir is on the first Tuesday of the month. | The band is on the third Monday of the month.
Gym for 5b: Monday 19:00. | Gym for 6a has been moved to Wednesday 18:00.
The Mertens hearing is on Tuesday. | The Kovacs hearing was adjourned to Thursday.
I started volunteering to help others. | I started volunteering at a dog shelter once a month.
The choir rehearses twice a week. | The orchestra rehearses three times a week.
The choir rehearses twice a week. | The choir performs once a month.
Agnes feeds the goats at quarter to six. | Agnes feeds the hens at seven.
The ferry to Bute leaves at half past ten. | The ferry to Arran leaves at quarter to eleven.
The crate holds a dozen bottles. | The bag holds six bottles.
A night porter looks after two entrances. | A day porter looks after three entrances.
I went to the market on Tuesday. | I went to the market on Saturday.
The gateway supports SMS login. | SMS login is not supported by the intranet.
The clinic accepts walk-in patients. | Walk-in patients are not accepted by the dentist.
Ticket 552 is still open. | Ticket 553 has been closed.
The pool is still open. | The sauna has been closed.
Olga works as a lifeguard. | Olga's sister quit her job as a lifeguard.
Bruno owns a canoe. | Bruno sold the kayak.
Paula has a library book about bees. | Paula returned a library book about ants.
We rent a garage in Mill Street. | We gave up the shop in Mill Street.
The roof still has to be repaired. | The repair of the fence was finished on Friday.
The contract with Olafsson still needs to be signed. | The contract with Brand is signed.
We're looking for a tenant for the attic flat. | A tenant for the cellar flat has been found.
Only members may enter the archive. | The archive opens at nine.
Only members may enter the archive. | The library is open to everyone now.
Only managers can see the budget. | Everybody can see the calendar now.
The cabin has no shower. | The main house has a shower.
The cabin has no shower. | A stove was installed in the cabin.
The north cabin has no shower. | A shower was installed in the south cabin.
The hotel has no pool. | The pool in the park is free.
Children pay nothing. | Adults pay 8 euros.
The museum is free on Sundays. | The museum costs 8 euros on Mondays.
The mail server has never been down. | The web server was down for an hour yesterday.
All our vans are diesel. | Half of our trucks are electric now.
All our vans are diesel. | Half of our vans are red.
The vineyard grows only Riesling. | Half of the vineyard is on a slope.
Dentist appointment for Leo: 3 May, 15:00. | Mia's dentist appointment was rescheduled to 10 May.
The boat belongs to my uncle. | We bought a car from my uncle, it is ours now.
The boat belongs to my uncle. | The house belongs to my aunt.
The spare keys are in the drawer under the sink. | The spare bulbs are in the locker at the gate.
Some spare keys are in the drawer under the sink. | Some spare keys are in the locker at the gate.
The cups are in the cupboard. | The cups are in good condition.
Tools are in the shed. | Tools are in short supply.
Winter tyres are stored in the cellar. | Summer tyres are stored in the garage.
The bookshop has a coffee corner. | The coffee corner in the cinema was replaced by a bar.
Der Chor probt dienstags. | Das Orchester probt jetzt donnerstags.
Das Konzert findet am 3. Mai statt. | Die Lesung wurde auf den 10. Mai verschoben.
Die Gruppe wird von Frau Lang betreut. | Der Kurs wird von Herrn Novak betreut.
Le marché a lieu le samedi matin. | Le concert a lieu le dimanche matin.
Mon fils travaille chez Renault. | Ma fille a quitté Renault.
Les clients ont accès au parking. | Les visiteurs n'ont plus accès au parking.
Mi profesora se llama Pilar. | Mi nuevo vecino es Andrés.
El museo abre los lunes. | El teatro ya no abre los lunes.
La reunión es el martes. | La fiesta es ahora el jueves.
Refunds have to be asked for within 14 days. | Parcels arrive within 30 days.
Six people report to Martin. | Helga has nine direct reports now.
Tenants must give notice within 30 days. | Landlords get 60 days to give notice.
Tenants must give notice within 30 days. | Deposits are returned within 60 days.
The Weber family has no dog. | The Meyers adopted a puppy.
I don't own a bike. | My sister bought a bike last week.
I started running to lose weight. | I started running in the park every Sunday.
I started painting because of my aunt. | I started painting landscapes with oil.
Lotte wants to join the navy. | Lotte has joined a gym.
We're flying to Malta in June. | We cancelled the hotel in Rome.
Our party will be at the lake. | We've booked the band for our party.
Vera is on maternity leave. | Ines came back from maternity leave on Monday.
Our bakery is closed for renovation. | Our café reopened on Saturday.
I lived in Lisbon. | I no longer live with my parents.
Magda is expecting a baby. | Magda's sister's baby was born on Tuesday.
Magda is expecting a parcel. | Magda's baby was born on Tuesday.
The post of caretaker is vacant. | Irina started as receptionist on Monday.
The shop sells honey. | The honey is not sold in plastic jars.
The API accepts JSON. | XML is not accepted by the API.
Nina is looking for a job. | Nina's brother starts at Siemens in May.
Somebody has to order the tiles. | The bricks are ordered.
Only Ines has a key to the cellar. | Everyone has a key to the gate now.
The team works from the office. | Half of the team is on holiday.
No dogs are allowed in the shop. | The shop has a dog called Rex.
We own a rowing boat. | The neighbours' sailing boat was sold to the club.
Nuno lives in Braga. | Nuno finished school and his sister moved to Faro.
The colours are so bold. | The colours are so bright.
There is a hiring freeze. | The travel freeze was lifted on Monday.
Our trainee is 19. | Our cook turned 50 on Friday.
Mila has lived in Oslo for a time. | Mila has lived in Rome for a time.
The firewall blocks port 25. | The firewall blocks port 23.
Access logs are kept for 30 days. | We keep backups for 90 days now.
Customer data is stored in Frankfurt. | In the spring we lost 20 customers.
Every change needs a ticket. | Tickets are sold at the door.
Ludmila plays the cello. | I gave up the cello.
The guest house has a lift. | The house was sold to a bank.
The motion detector is on. | I bought my own cello and returned the borrowed one.
All services must use TLS. | TLS is terminated at the load balancer.
Rex is our dog. | Bella is our dog.
Kai is our neighbour. | Ina is our neighbour.
Our son is called Jonas. | Our son is called Lukas.
The library is open until 6. | The library is open from 10.
The shop opens at nine on Monday. | The shop opens at nine on Tuesday.
The museum is closed on Mondays. | The museum is closed on Tuesdays.
Our wedding will be in the garden. | The wedding is on 14 June.
The film starts at 8. | The film starts at 8 pm.
The meeting is at 12 Mill Lane. | The meeting is at 11:30.
The gym opens at 8. | The gym opens at 9 on Sundays.
Yoga is on Mondays at 6. | Yoga is on Thursdays at 7.
The launch is planned for 3 March. | The launch party slipped to 4 March.
Deliveries leave at 5:45. | Returns no longer leave at 5:45 but at 6:15.
We store invoices in Dropbox. | We no longer store photos in Dropbox but in S3.
Our treasurer is Ines Koller. | Pavel Novak is assistant treasurer now.
The CEO is Petra Vogel. | Oskar Lind is a CEO now.
The CEO is Petra Vogel. | Oskar Lind is CEO of Norvik now.
Our laptops run on Windows 10. | We migrated to Windows 11.
Our test server runs on Debian 11. | We moved to Debian 12.
Anna lives in Lyon. | Anna went from Lyon to Paris.
Letters are sent from Bern. | The letters went from Bern to Basel.
We have 14 employees. | We are 15 minutes away now.
We have 3 children. | We are 4 adults now.
We decided to charge 65 euros per person. | We raised the price to 70 euros per table.
We charge 30 euros per hour. | The gym raised the price to 35 euros per hour.
Our favourite walk is the Mill Loop. | Our favourite walk is closed these days.
"""
SAME = """
The cache holds entries for 3600 seconds. | The cache holds entries for one hour.
The trial lasts two weeks. | The trial lasts 14 days.
The disk has 2 TB. | The disk has 2,000 GB.
The shop opens at 9 am. | The shop opens at 9:00.
The shop opens at 9. | The shop opens at 9:00.
The audit is on 2026-05-03. | The audit is on 3 May 2026.
The audit happens every year. | The audit happens annually.
Visitors are not allowed to film. | Visitors must not film.
The van seats nine. | The van seats 9.
Parking costs 5 euros. | Parking costs €5.
Eva lives in Kiel. | Eva now lives in Kiel.
Every employee has to wear a badge. | Each employee must wear a badge.
We can not deploy on Fridays. | We can't deploy on Fridays.
"""


def _pairs(block: str) -> list[tuple[str, str]]:
    lines = [line.split(" | ") for line in block.strip().splitlines()]
    return [(earlier, later) for earlier, later in lines]


def _relation(earlier: str, later: str) -> Relation | None:
    finding = compare(Statement(earlier, 1), Statement(later, 2))
    return None if finding is None else finding.relation


@pytest.mark.parametrize(("earlier", "later"), _pairs(CHANGES))
def test_a_change_is_noticed(earlier: str, later: str) -> None:
    assert _relation(earlier, later) in (Relation.UPDATES, Relation.CONTRADICTS)


@pytest.mark.parametrize(("earlier", "later"), _pairs(COMPATIBLE))
def test_another_bearer_environment_or_attribute_is_no_change(earlier: str, later: str) -> None:
    assert _relation(earlier, later) is None


@pytest.mark.parametrize(("earlier", "later"), _pairs(SAME))
def test_another_notation_is_a_duplicate(earlier: str, later: str) -> None:
    assert _relation(earlier, later) is Relation.DUPLICATE


@pytest.mark.parametrize(
    ("earlier", "later", "reason"),
    [
        (
            "Lena is the product owner.",
            "Samira took over from Lena as product owner.",
            "the later statement says that it changed: transferred from Lena",
        ),
        (
            "The boiler is serviced every 3 years.",
            "The boiler is serviced every 4 years.",
            "same subject and attribute, other value: every 3 years / every 4 years",
        ),
        (
            "Our storage provider is Backblaze B2.",
            "Our storage provider is Wasabi.",
            "same subject and attribute, other value: Backblaze B2 / Wasabi",
        ),
        (
            "We charge 65 euros per person.",
            "We had to raise the price to 70 euros per person.",
            "the later statement says that it changed: raised to 70 euros",
        ),
    ],
)
def test_a_reason_is_worded_as_it_was_said(earlier: str, later: str, reason: str) -> None:
    finding = compare(Statement(earlier, 1), Statement(later, 2))
    assert finding is not None
    assert finding.reason == reason
