"""Price facts, us-east-1, Linux, on demand, July 2026: per family the price of a vCPU, and the types that differ.

Figures only, in millionths of a US dollar per hour; an estimate wherever the real price can be had.
"""

from __future__ import annotations


def _parse(text: str) -> dict[str, int]:
    return {name: int(value) for name, _, value in (row.partition("=") for row in text.split())}


#: Price of one vCPU by instance family.
PER_VCPU = _parse("""
a1=25500 c1=65000 c3=52500 c4=49750 c5=42500 c5a=38500 c5ad=43000 c5d=48000 c5n=54000 c6a=38250 c6g=34000
c6gd=38400 c6gn=43200 c6i=42500 c6id=50400 c6in=56700 c7a=51320 c7g=36250 c7gd=45360 c7gn=62400 c7i=44620
c7i-flex=42390 c8a=53890 c8g=39880 c8gb=59250 c8gd=48990 c8gn=59250 c8i=46860 c8i-flex=44510 c8ib=68040
c8id=55440 c8in=68040 c8ine=85050 d2=172500 d3=124870 d3en=131430 dl1=136550 f2=82500 g4ad=54190 g4dn=81500
g5=93170 g5g=47310 g6=76120 g6e=172350 g6f=59370 g7e=172630 gr6=86320 gr6f=66630 h1=58500 hpc7g=52600
i2=213130 i3=78000 i3en=113000 i4g=77220 i4i=85800 i7i=94380 i7ie=129950 i8g=85800 i8ge=118650 im4gn=90950
inf1=49170 inf2=67610 is4gen=144080 m1=87250 m2=122500 m3=66500 m4=50000 m5=48000 m5a=43000 m5ad=51500
m5d=56500 m5dn=68000 m5n=59500 m5zn=82590 m6a=43200 m6g=38500 m6gd=45200 m6i=48000 m6id=59330 m6idn=79560
m6in=69610 m7a=57960 m7g=40800 m7gd=53390 m7i=50400 m7i-flex=47880 m8a=60860 m8azn=103230 m8g=44880 m8gb=72750
m8gd=57660 m8gn=72750 m8i=52920 m8i-flex=50280 m8ib=83540 m8id=65260 m8in=83540 m8ine=104430 p3dn=325120
p4d=228730 p4de=285910 p5=358330 p5en=329670 p6-b200=593400 p6-b300=741750 r3=83130 r4=66500 r5=63000
r5a=56500 r5ad=65500 r5b=74500 r5d=72000 r5dn=83500 r5n=74500 r6a=56700 r6g=50400 r6gd=57600 r6i=63000
r6id=75600 r6idn=97700 r6in=87170 r7a=76080 r7g=53550 r7gd=68040 r7i=66150 r7iz=93000 r8a=79880 r8g=58910
r8gb=91090 r8gd=73480 r8gn=91090 r8i=69460 r8i-flex=65990 r8ib=104600 r8id=83160 r8in=104600 t1=20000 t2=23200
t3=20800 t3a=18800 t4g=16800 trn1=167970 trn1n=193590 u-3tb1=121870 u-6tb1=164520 u7i-12tb=140160
u7i-6tb=140160 u7i-8tb=186870 u7in-16tb=201420 u7in-24tb=302160 u7in-32tb=402890 vt1=54170 x1=104200
x1e=208500 x2gd=83500 x2idn=104200 x2iedn=208410 x2iezn=208500 x8g=97700 x8i=109410 z1d=93000
""")

#: Price of a whole instance, for types whose price is more than 1.5 % away from vCPUs times the family's rate.
EXCEPTIONS = _parse("""
c4.8xlarge=1591000 c6g.metal=2306600 c6gd.metal=2605100 c7i.metal-24xl=4712400 c8a.metal-24xl=5690260
c8g.metal-24xl=4211330 c8gb.metal-24xl=6029280 c8gd.metal-24xl=5173340 c8gn.metal-24xl=6029300
c8i.metal-48xl=9895780 c8ib.metal-48xl=14370100 c8id.metal-48xl=11708900 c8in.metal-48xl=14370100
d2.8xlarge=5520000 g4ad.2xlarge=541170 g4ad.xlarge=378530 g4dn.16xlarge=4352000 g4dn.2xlarge=752000
g4dn.4xlarge=1204000 g4dn.8xlarge=2176000 g4dn.xlarge=526000 g5.12xlarge=5672000 g5.16xlarge=4096000
g5.24xlarge=8144000 g5.2xlarge=1212000 g5.48xlarge=16288000 g5.4xlarge=1624000 g5.8xlarge=2448000
g5.xlarge=1006000 g5g.16xlarge=2744000 g5g.2xlarge=556000 g5g.4xlarge=828000 g5g.8xlarge=1372000
g5g.metal=2744000 g5g.xlarge=420000 g6.12xlarge=4601600 g6.16xlarge=3396800 g6.24xlarge=6675200
g6.2xlarge=977600 g6.48xlarge=13350400 g6.4xlarge=1323200 g6.8xlarge=2014400 g6.xlarge=804800
g6e.12xlarge=10492600 g6e.16xlarge=7577190 g6e.24xlarge=15065600 g6e.2xlarge=2242080 g6e.48xlarge=30131200
g6e.4xlarge=3004240 g6e.8xlarge=4528560 g6e.xlarge=1861000 g6f.large=202000 g7e.2xlarge=3363120
g7e.4xlarge=3998160 g7e.8xlarge=5268240 gr6.4xlarge=1539200 gr6.8xlarge=2446400 hpc7g.16xlarge=1683200
hpc7g.4xlarge=1683200 i7i.metal-24xl=9620400 i7i.metal-48xl=19240800 i7ie.metal-24xl=13284400
i7ie.metal-48xl=26568700 i8g.metal-24xl=9060480 i8g.metal-48xl=18121000 i8ge.metal-24xl=12131300
i8ge.metal-48xl=24262600 inf1.2xlarge=362000 inf1.xlarge=228000 inf2.8xlarge=1967860 inf2.xlarge=758200
m1.small=44000 m5zn.metal=4360500 m6g.metal=2611200 m6gd.metal=3066400 m7i.metal-24xl=5322240
m8a.metal-24xl=6426820 m8azn.metal-12xl=5450540 m8azn.metal-24xl=10901100 m8g.metal-24xl=4739330
m8gb.metal-24xl=14806100 m8gd.metal-24xl=6088900 m8gn.metal-24xl=7403000 p5.48xlarge=55040000
p5.4xlarge=6880000 r5b.metal=7867200 r6g.metal=3419100 r6gd.metal=3907600 r7i.metal-24xl=6985440
r7iz.metal-16xl=6547200 r7iz.metal-32xl=13094400 r8a.metal-24xl=8435330 r8g.metal-24xl=6220900
r8gb.metal-24xl=18538600 r8gd.metal-24xl=7759490 r8gn.metal-24xl=9269300 r8i.metal-48xl=14670000
r8id.metal-48xl=17563400 t2.2xlarge=371200 t2.large=92800 t2.micro=11600 t2.nano=5800 t2.xlarge=185600
t3.2xlarge=332800 t3.large=83200 t3.micro=10400 t3.nano=5200 t3.small=20800 t3.xlarge=166400
t3a.2xlarge=300800 t3a.large=75200 t3a.micro=9400 t3a.nano=4700 t3a.small=18800 t3a.xlarge=150400
t4g.2xlarge=268800 t4g.large=67200 t4g.micro=8400 t4g.nano=4200 t4g.small=16800 t4g.xlarge=134400
u-6tb1.112xlarge=54600000 u-6tb1.56xlarge=46403900 x2gd.metal=5878400 x8g.metal-24xl=10317100
x8i.96xlarge=48744400 x8i.metal-48xl=23108500 x8i.metal-96xl=48744400
""")
